// Shared by the connections of one HTTP server: its options, its handler, its io_context, and the list of
// connections.
//
// Thread: options, handler and contexts are set before the first connection; the rest under the mutex.
// Internal to the server.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/strand.hpp>

#include "sys/http/http.h"

namespace muster::http_server {

namespace asio = boost::asio;
using Strand = asio::strand<asio::io_context::executor_type>;

class Connection;

// Outlives the server as long as a Responder exists.
struct Core {
  HttpServerOptions options;
  HttpHandler handler;
  asio::io_context io;
  asio::ssl::context tls{asio::ssl::context::tls_server};

  std::mutex mutex;
  bool stopping = false;
  std::set<std::shared_ptr<Connection>> connections;
  std::map<std::string, size_t> unknown_clients_of;  // address -> unauthenticated connections
  size_t unknown_clients = 0;                        // all of them
  size_t bodies = 0;                                 // bytes being received, by Content-Length

  // The mutex must be held. False: the limit of unauthenticated connections is reached.
  bool admit_unknown(const std::string& address) {
    if (!options.unix_path.empty()) return true;
    size_t& here = unknown_clients_of[address];
    if (unknown_clients >= options.max_unknown_clients || here >= options.max_unknown_per_address) {
      if (here == 0) unknown_clients_of.erase(address);
      return false;
    }
    ++here;
    ++unknown_clients;
    return true;
  }
  void forget_unknown(const std::string& address) {
    const auto found = unknown_clients_of.find(address);
    if (found == unknown_clients_of.end()) return;
    --unknown_clients;
    if (--found->second == 0) unknown_clients_of.erase(found);
  }

  // Posts work from other threads. Work is dropped once the server stops: it would never run, and would keep
  // the core alive.
  template <typename Work>
  void post(const Strand& strand, Work work) {
    std::lock_guard lock(mutex);
    if (!stopping) asio::post(strand, std::move(work));
  }
};

}  // namespace muster::http_server
