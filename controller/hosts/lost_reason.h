// Why a command that connects to a host ended, from what it, and the host through it, wrote. One table
// decides what known words mean, and so whether another try can help; unknown words are shown as they are,
// and tried again.
//
// ssh writes progress lines (ssh_command.h sets LogLevel=DEBUG1). They are never shown, but tell what the
// words between them are: the site's banner comes before the first attempt to log in, the words of PAM after
// the key was accepted, those of start-up files after the login. Thread safety: value types and stateless
// functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

// The standard error of a command, as it arrives.
class ErrorText {
 public:
  void take(std::string_view bytes);
  // What was written until now stopped nothing.
  void forget();

  bool key_accepted() const { return key_accepted_; }  // false, too, for other kinds of login
  bool logged_in() const { return logged_in_; }        // false, too, without progress lines
  // The end of it, without progress lines and without what was written before a further step of the login.
  std::string words() const;

 private:
  void take_line();
  void take_step(std::string_view step);

  std::string words_, line_;
  bool tried_ = false, key_accepted_ = false, logged_in_ = false;
};

struct EndedCommand {
  int status = 0;          // exit status, 128 + signal
  ErrorText err = {};      // its standard error
  std::string last_out;    // last line of its standard output that is not a message
  bool shell_ran = false;  // /bin/sh had started on the host
  bool agent_ran = false;  // the host's agent had responded, so the connection was lost later
};

// Returns the reason, with the codes of HostWireEvents::lost (controller/hosts/host_wire.h): unavailable
// where another try can help, and any other where it cannot.
Error lost_reason(const EndedCommand& ended);

// What a host wrote, as one line for people: without control characters, escape sequences of terminals and
// bytes that are not UTF-8; "" if it was not text. The last 300 bytes.
std::string one_line(std::string_view text);

// Returns the last line that is not empty, likewise.
std::string last_line(const std::string& text);

}  // namespace muster
