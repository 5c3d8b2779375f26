// Bmc: one emulated Redfish service: stateful, strict in what it accepts, and with the peculiarities of its
// profile.
//
// handle() is the Redfish interface: it takes an HTTP request and returns a response without blocking (the
// machine has its own thread). It rejects what real BMCs reject: unknown properties and values, wrong or
// missing ETags (412, 428), power-on too soon after power-off (409), a boot override during the self-test,
// sessions above the limit, idle tokens, logins to a locked account. A "Once" override is cleared by the next
// boot of any cause. Not emulated: virtual media, BIOS settings, events, accounts. Thread-safe (one mutex).
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/time.h"
#include "lab/bmc_profile.h"
#include "lab/machine.h"
#include "sys/http/http.h"

namespace muster::lab {

struct BmcIdentity {
  std::string node, uuid, serial, mac;
  int memory_mib = 0;
  int cpus = 0;
};

class Bmc {
 public:
  using Clock = std::function<TimeMs()>;
  Bmc(BmcProfile profile, BmcIdentity identity, std::string user, std::string password, Machine& machine,
      Clock now);

  HttpResponse handle(const HttpRequest& request);

  // Executes an IPMI chassis command on the machine (lab/ipmi_bmc.h): "get power boot", "set boot pxe".
  Result<Json> chassis(const std::vector<std::string>& words);
  // Fault: every request is answered with 503 until `until`.
  void fail_until(TimeMs until);
  // Returns the boot override for `lab status`: "Once Pxe", "Disabled".
  std::string override_text();
  int requests_served();
  int failed_logins();  // since construction
  // Fault: drops all sessions, as after a restart of the BMC.
  void forget_sessions();

 private:
  struct Override {
    std::string target = "None", enabled = "Disabled", mode = "UEFI", http_uri;
    bool network_next() const { return enabled != "Disabled" && (target == "Pxe" || target == "UefiHttp"); }
  };
  struct Session {
    std::string token;
    TimeMs used = 0;
  };

  // bmc.cc: authentication and routing.
  HttpResponse dispatch(const HttpRequest& request, const std::string& path);
  bool authorised(const HttpRequest& request);
  bool right(const std::string& user, const std::string& password);
  HttpResponse create_session(const HttpRequest& request);
  HttpResponse delete_session(const std::string& id);
  void drop_idle_sessions();
  void booted();

  // bmc_system.cc: what changes the machine.
  HttpResponse patch_system(const HttpRequest& request, const std::string& path);
  std::optional<HttpResponse> check_etag(const HttpRequest& request, const std::string& path);
  std::optional<HttpResponse> change_override(const Json& boot, Override& next) const;
  HttpResponse reset_action(const HttpRequest& request);
  HttpResponse perform(const std::string& type);
  void change_power(bool to_on);
  HttpResponse accepted_action();

  Status chassis_set(const std::string& name, const std::string& value);

  // bmc_resources.cc: resources for GET.
  std::optional<Json> resource(const std::string& path);
  Json service_root() const;
  Json session_service() const;
  Json system();
  Json settings() const;
  Json second_system() const;
  Json boot_object(const Override& shown, bool with_lists) const;
  Json chassis() const;
  Json manager() const;
  Json ethernet_interface() const;
  Json reset_action_info() const;
  std::optional<HttpResponse> task(const std::string& path);
  std::string power_text();
  std::string system_path() const { return "/redfish/v1/Systems/" + profile_.system_id; }
  std::string settings_path() const {
    return profile_.settings_id.empty() ? "" : system_path() + "/" + profile_.settings_id;
  }

  const BmcProfile profile_;
  const BmcIdentity identity_;
  const std::string user_, password_;
  Machine& machine_;
  const Clock now_;

  std::mutex mutex_;
  Override next_;     // holds for the next boot
  Override current_;  // what the system resource shows if there is a settings object
  std::map<std::string, Session> sessions_;
  std::map<int, TimeMs> tasks_;
  int last_session_ = 0, last_task_ = 0, served_ = 0, failed_logins_ = 0, failed_in_a_row_ = 0;
  TimeMs fail_until_ = 0, refuse_on_until_ = 0, shown_until_ = 0, post_until_ = 0, locked_until_ = 0;
  std::string shown_power_;
};

// Returns {"error": {...}} with one ExtendedInfo message, the form of every Redfish error response.
HttpResponse redfish_error(int status, const std::string& message_id, const std::string& text,
                           const std::vector<std::string>& args = {});
std::string etag_of(const Json& resource);

}  // namespace muster::lab
