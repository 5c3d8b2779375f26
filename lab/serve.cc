#include "lab/serve.h"

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/json_dump.h"
#include "lab/fake_machine.h"
#include "lab/rack.h"
#include "sys/http/http.h"
#include "sys/log.h"
#include "sys/pki.h"

namespace muster::lab {
namespace {

HttpResponse answer(Result<Json> result) {
  if (result) return HttpResponse::json(200, dump_json(*result));
  const auto& error = result.error();
  const int status = error.code == Code::not_found  ? 404
                     : error.code == Code::conflict ? 409
                     : error.code == Code::failed   ? 500
                                                    : 400;
  return HttpResponse::json(
      status, dump_json(Json{{"code", std::string(to_string(error.code))}, {"message", error.message}}));
}

Result<Json> control_request(Rack& rack, const HttpRequest& request) {
  if (request.method == "GET" && request.path == "/status") return rack.status();
  if (request.method != "POST") return fail(Code::not_found, "unknown control request: " + request.path);
  TRY(auto body, parse_json(request.body));
  if (request.path == "/break") {
    TRY(auto what, break_from_json(body));
    return rack.carry_out(what);
  }
  if (request.path == "/chassis") {
    std::string node;
    std::vector<std::string> words;
    JsonReader reader(body, "chassis");
    reader.get("node", node);
    reader.get("words", words);
    TRY_(reader.finish());
    return rack.chassis(node, words);
  }
  if (request.path == "/add") {
    std::string name;
    bool on = false;
    JsonReader reader(body, "add");
    reader.get("name", name);
    reader.get_or("on", on, false);
    TRY_(reader.finish());
    return rack.add(name, on);
  }
  return fail(Code::not_found, "unknown control request: " + request.path);
}

}  // namespace

Status serve(const LabDir& dir, const QemuHost& host) {
  TRY(auto text, Files("/").read(dir.spec()));
  TRY(auto json, parse_json(text));
  TRY(auto spec, lab_spec_from_json(json));
  auto process = make_process();
  auto reactor = make_reactor(1);
  std::error_code unknown;
  RackOptions options{dir, host};
  options.program = std::filesystem::read_symlink("/proc/self/exe", unknown).string();
  Rack rack(std::move(options), spec, *process, *reactor);
  TRY_(rack.start());
  TRY_(Files("/").remove(dir.control()));
  HttpServerOptions http;
  http.unix_path = dir.control();
  http.threads = 2;
  TRY(auto server, start_http_server(http, [&rack](HttpRequest request, ResponderPtr responder) {
        responder->respond(answer(control_request(rack, request)));
      }));
  log::info("lab is up", {{"cluster", spec.cluster}, {"machines", std::to_string(spec.nodes.size())}});
  reactor->on_stop_signal([&] { reactor->stop(); });
  reactor->run();
  server->stop();
  rack.power_off_all();
  return Files("/").remove(dir.control());
}

Result<Json> control(const LabDir& dir, const std::string& method, const std::string& path, const Json& body,
                     DurationMs deadline) {
  TRY(auto client, make_http_client({.base = "unix:" + dir.control()}));
  HttpRequest request;
  request.method = method;
  request.target = path;
  if (method != "GET") {
    request.body = dump_json(body);
    request.headers["Content-Type"] = "application/json";
  }
  auto response = client->request(request, deadline);
  if (!response)
    return fail(response.error().code, "no lab answers in " + dir.root() + ": " + response.error().message);
  TRY(auto json, parse_json(response->body));
  if (response->status == 200) return json;
  return fail(code_from_string(json.value("code", "failed")), json.value("message", "refused"));
}

Status serve_fake_bmc(const std::string& profile_name, uint16_t port, const std::string& password, bool tls) {
  const auto* profile = find_profile(profile_name);
  if (!profile) return fail(Code::invalid, "no BMC profile named " + profile_name);
  FakeMachine machine;
  const BmcIdentity identity{
      "fake", "6d757374-6572-4c61-8000-000000000001", "FAKE0001", "52:54:00:20:00:01", 1024, 1};
  Bmc bmc(*profile, identity, "admin", password, machine, [] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  });
  auto reactor = make_reactor(1);
  HttpServerOptions http;
  http.port = port;
  http.threads = 1;
  http.tls = tls;
  if (tls) {
    TRY(auto maker, pki::make_ca("fake BMC maker", 2));
    TRY(auto pair, pki::issue(maker, {.common_name = "bmc-fake",
                                      .organization = "muster lab",
                                      .addresses = {"127.0.0.1"},
                                      .server = true,
                                      .days = 2}));
    http.tls_options.certificate_pem = pair.certificate_pem;
    http.tls_options.key_pem = pair.key_pem;
  }
  TRY(auto server, start_http_server(http, [&](HttpRequest request, ResponderPtr responder) {
        responder->respond(bmc.handle(request));
        if (request.method != "POST") return;
        reactor->post([&] { reactor->after(500, [&] { machine.boot(); }); });  // firmware takes a moment
      }));
  reactor->on_stop_signal([&] { reactor->stop(); });
  std::printf("listening %d (SIMULATED machine)\n", server->port());
  std::fflush(stdout);
  reactor->run();
  server->stop();
  return Ok{};
}

}  // namespace muster::lab
