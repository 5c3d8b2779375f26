#include "controller/api/dispatcher.h"

#include <utility>

#include "controller/api/caller.h"
#include "controller/api/services.h"

namespace muster::api {

Dispatcher::Dispatcher(Services& services)
    : services_(services),
      names_(
          services.reactor,
          [&reactor = services.reactor](Reactor::Task work, Reactor::Task done) {
            reactor.offload(std::move(work), std::move(done));
          },
          Files("/"), login_name) {}

HttpHandler Dispatcher::handler(Listener listener) {
  return [this, &reactor = services_.reactor, listener, alive = alive_.watch()](HttpRequest request,
                                                                                ResponderPtr responder) {
    reactor.post(
        [this, listener, alive, request = std::move(request), responder = std::move(responder)]() mutable {
          if (*alive) receive(listener, std::move(request), std::move(responder));
        });
  };
}

void Dispatcher::receive(Listener listener, HttpRequest request, ResponderPtr responder) {
  const auto user = user_to_name(request);
  auto go_on = [this, listener, request = std::move(request),
                responder = std::move(responder)](const std::string& login) mutable {
    Caller caller = caller_of(request, [&login](uint32_t) { return login; });
    dispatch(services_, listener, std::move(request), std::move(responder), std::move(caller));
  };
  if (!user) return go_on("");
  names_.find(*user, std::move(go_on));
}

}  // namespace muster::api
