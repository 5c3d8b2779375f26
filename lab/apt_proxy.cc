#include "lab/apt_proxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/split.h"
#include "lab/child.h"

namespace muster::lab {
namespace {

// One nginx process per side, in the foreground: no worker is left behind when it is killed.
std::string preamble(const LabDir& dir, const std::string& side) {
  return fmt::format(
      "daemon off; master_process off; worker_processes 1;\n"
      "pid {0}/apt/{1}.nginx.pid; error_log {0}/apt/{1}.err;\n"
      "events {{ worker_connections 512; }}\n"
      "http {{\n access_log off;\n"
      " client_body_temp_path {0}/apt/tmp-{1}/body; proxy_temp_path {0}/apt/tmp-{1}/proxy;\n"
      " fastcgi_temp_path {0}/apt/tmp-{1}/f; uwsgi_temp_path {0}/apt/tmp-{1}/u; scgi_temp_path "
      "{0}/apt/tmp-{1}/s;\n"
      " proxy_http_version 1.1;\n",
      dir.root(), side);
}

Status start_side(const LabDir& dir, const std::string& side, const std::string& config,
                  const std::string& space) {
  Files files("/");
  const auto path = dir.path("apt/" + side + ".conf");
  TRY_(files.make_directories(dir.path("apt/tmp-" + side)));
  TRY_(files.write(path, config));
  Spawn nginx;
  if (!space.empty()) nginx.argv = {"ip", "netns", "exec", space};
  nginx.argv.insert(nginx.argv.end(), {"nginx", "-e", dir.path("apt/" + side + ".err"), "-c", path});
  nginx.log = dir.path("apt/" + side + ".log");
  nginx.mark = path;
  TRY(auto child, spawn(nginx));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  if (!alive(child)) {
    const auto why = files.read(dir.path("apt/" + side + ".err"));
    return fail(Code::failed, "nginx did not start: " + (why ? *why : std::string("no message")));
  }
  return write_pid_file(dir.path("apt/" + side + ".pid"), child);
}

}  // namespace

std::vector<std::string> mirror_hosts(const std::string& indextargets_output) {
  std::vector<std::string> hosts;
  for (const std::string& line : split_lines(indextargets_output)) {
    const std::string scheme = "http://";
    if (!line.starts_with(scheme)) continue;
    const auto host = line.substr(scheme.size(), line.find_first_of("/ ", scheme.size()) - scheme.size());
    if (!host.empty() && std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(host);
  }
  return hosts;
}

std::string host_side_config(const LabDir& dir, const std::vector<std::string>& hosts) {
  auto text = preamble(dir, "host");
  text += fmt::format(
      " proxy_cache_path {0}/apt/cache levels=1:2 keys_zone=apt:8m inactive=30d use_temp_path=off;\n"
      " proxy_cache apt; proxy_cache_key $host$uri; proxy_cache_lock on; proxy_cache_valid 200 30d;\n"
      " proxy_ignore_headers Cache-Control Expires Set-Cookie;\n",
      dir.root());
  for (size_t i = 0; i < hosts.size(); ++i)
    text += fmt::format(
        " server {{\n  listen unix:{0}/apt/apt.sock{1};\n  server_name {2};\n  location / {{\n"
        "   proxy_pass http://{2};\n   proxy_set_header Host {2};\n   proxy_set_header Connection \"\";\n  "
        "}}\n"
        "  location ~ /dists/ {{\n   proxy_cache off;\n   proxy_pass http://{2};\n   proxy_set_header Host "
        "{2};\n"
        "   proxy_set_header Connection \"\";\n  }}\n }}\n",
        dir.root(), i == 0 ? " default_server" : "", hosts[i]);
  return text + "}\n";
}

std::string lab_side_config(const LabDir& dir, const LabSpec& spec) {
  return preamble(dir, "lab") +
         fmt::format(
             " server {{\n  listen {}:{};\n  location / {{\n   proxy_pass http://unix:{}/apt/apt.sock:;\n"
             "   proxy_set_header Host $host;\n   proxy_set_header Connection \"\";\n   "
             "proxy_max_temp_file_size 0;\n"
             "   proxy_read_timeout 300;\n  }}\n }}\n}}\n",
             spec.controller, kAptProxyPort, dir.root());
}

Result<std::string> start_apt_proxy(Process& process, const LabDir& dir, const LabSpec& spec,
                                    const std::string& space) {
  TRY(auto listing, run_ok(process, Command{.argv = {"apt-get", "indextargets", "--format", "$(REPO_URI)"}}));
  const auto hosts = mirror_hosts(listing);
  if (hosts.empty()) return fail(Code::not_found, "the host's apt uses no plain-HTTP mirror");
  TRY_(start_side(dir, "host", host_side_config(dir, hosts), ""));
  TRY_(start_side(dir, "lab", lab_side_config(dir, spec), space));
  return fmt::format("http://{}:{}", spec.controller, kAptProxyPort);
}

}  // namespace muster::lab
