// A BMC that answers anything. The input is what the driver is to do (bmc.h), and then the answers in the
// order of its requests, each after a line "---": a line with the status, header lines, an empty line, the
// body. After the last one the BMC is gone.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/split.h"
#include "controller/power/redfish.h"
#include "tests/fuzz/bmc.h"

namespace muster::fuzz {
namespace {

constexpr DurationMs kCall = 20 * kSecond, kRequest = 500;  // a request: what each takes
constexpr size_t kMostHeaders = 32;

// Of all connections of a driver.
struct Answers {
  std::vector<std::string> texts;
  size_t next = 1;  // the first piece says what is to be done
  Clock clock = new_clock();
};

HttpResponse answer_of(const std::string& text) {
  const size_t end = text.find("\n\n");
  const auto lines = split_lines(text.substr(0, end));
  HttpResponse out;
  out.status = lines.empty() ? 200 : std::abs(std::atoi(lines[0].substr(0, 3).c_str()));
  for (size_t i = 1; i < std::min(lines.size(), kMostHeaders); ++i)
    if (const size_t colon = lines[i].find(':'); colon != std::string::npos)
      out.headers[lines[i].substr(0, colon)] = trim(lines[i].substr(colon + 1));
  if (end != std::string::npos) out.body = text.substr(end + 2);
  return out;
}

class Bmc : public HttpClient {
 public:
  explicit Bmc(std::shared_ptr<Answers> answers) : answers_(std::move(answers)) {}

  Result<HttpResponse> request(HttpRequest, DurationMs) override {
    *answers_->clock += kRequest;
    if (answers_->next >= answers_->texts.size()) return fail(Code::unavailable, "connection refused");
    return answer_of(answers_->texts[answers_->next++]);
  }
  Result<HttpResponse> stream(HttpRequest one, DurationMs deadline,
                              std::function<bool(std::string_view)>) override {
    return request(std::move(one), deadline);
  }
  std::string peer_fingerprint() const override { return "sha256:00"; }

 private:
  const std::shared_ptr<Answers> answers_;
};

}  // namespace

void redfish_fuzz(std::string_view bytes) {
  const auto answers = std::make_shared<Answers>();
  answers->texts = pieces_of(bytes);
  const auto power = make_redfish(bmc_of_node01(answers->clock), waiter_on(answers->clock),
                                  [answers](const HttpClientOptions&) -> Result<std::unique_ptr<HttpClient>> {
                                    return std::unique_ptr<HttpClient>(std::make_unique<Bmc>(answers));
                                  });
  carry_out(*power, trim(answers->texts.front()), kCall);
}

}  // namespace muster::fuzz
