// Dispatcher: takes requests on the servers' threads and passes each to dispatch() on the reactor's thread,
// with its caller. A request that changes something may wait up to UserNames::kDeadline for its user's name;
// no other waits for that. Thread: the reactor's, except for the handlers.
#pragma once

#include "base/alive.h"
#include "controller/api/api.h"
#include "controller/api/user_names.h"
#include "sys/http/http.h"

namespace muster::api {

class Dispatcher {
 public:
  // `services` must outlive the servers.
  explicit Dispatcher(Services& services);

  // For a server, which may outlive the Dispatcher.
  HttpHandler handler(Listener listener);

 private:
  void receive(Listener listener, HttpRequest request, ResponderPtr responder);

  Services& services_;
  UserNames names_;
  Alive alive_;
};

}  // namespace muster::api
