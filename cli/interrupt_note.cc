#include "cli/interrupt_note.h"

#include <unistd.h>

#include <atomic>
#include <utility>

namespace muster::cli {
namespace {

std::atomic<const std::string*> note_shown{nullptr};

// Calls only what may be called in a handler. With SA_RESETHAND the signal ends the program once it returns,
// as it would have without: a shell sees that it was interrupted.
void show_note(int signal) {
  if (const std::string* text = note_shown.load())
    if (::write(STDERR_FILENO, text->data(), text->size()) < 0) {
    }
  ::raise(signal);
}

}  // namespace

InterruptNote::InterruptNote(const std::string& words) {
  set(words);
  if (::sigaction(SIGINT, nullptr, &before_) != 0 || before_.sa_handler != SIG_DFL) return;
  struct sigaction now = {};
  now.sa_handler = show_note;
  now.sa_flags = static_cast<int>(SA_RESETHAND);
  installed_ = ::sigaction(SIGINT, &now, nullptr) == 0;
}

InterruptNote::~InterruptNote() {
  if (installed_) ::sigaction(SIGINT, &before_, nullptr);
  note_shown = nullptr;
}

void InterruptNote::set(const std::string& words) {
  // Behind "^C", which the terminal shows.
  auto text = std::make_unique<const std::string>("\nmuster: " + words + "\n");
  note_shown = text.get();
  text_before_ = std::exchange(text_, std::move(text));
}

}  // namespace muster::cli
