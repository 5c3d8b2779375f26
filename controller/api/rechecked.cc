#include "controller/api/rechecked.h"

#include <utility>

namespace muster::api {
namespace {

class Rechecked : public Responder {
 public:
  Rechecked(ResponderPtr to, Refused refused) : to_(std::move(to)), refused_(std::move(refused)) {}

  void respond(HttpResponse response) override {
    auto refusal = refused_();
    to_->respond(refusal ? std::move(*refusal) : std::move(response));
  }
  void start_stream(HttpResponse head) override {
    if (auto refusal = refused_()) {
      ended_ = true;
      return to_->respond(std::move(*refusal));
    }
    to_->start_stream(std::move(head));
  }
  bool write(std::string chunk) override {
    if (!ended_ && refused_()) end_stream();
    return !ended_ && to_->write(std::move(chunk));
  }
  void end_stream() override {
    if (!std::exchange(ended_, true)) to_->end_stream();
  }

 private:
  const ResponderPtr to_;
  const Refused refused_;
  bool ended_ = false;
};

}  // namespace

ResponderPtr rechecked(ResponderPtr to, Refused refused) {
  return std::make_shared<Rechecked>(std::move(to), std::move(refused));
}

}  // namespace muster::api
