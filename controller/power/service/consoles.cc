#include "controller/power/service/consoles.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "sys/log.h"

namespace muster {
namespace {

constexpr DurationMs kLook = 5 * kSecond;
constexpr std::uintmax_t kMost = 4 << 20;
constexpr size_t kLongestLine = 1024, kLongestPanic = 200;

}  // namespace

std::string panic_in(const std::string& line) {
  constexpr std::string_view kPanic = "Kernel panic - not syncing";
  const size_t at = line.find(kPanic);
  if (at == std::string::npos || line.find("end Kernel panic") != std::string::npos) return "";
  return line.substr(at, kLongestPanic);
}

Consoles::Consoles(Reactor& reactor, std::string state, Hooks hooks, std::string program)
    : reactor_(reactor), folder_(std::move(state) + "/consoles"), hooks_(std::move(hooks)) {
  reader_ = std::make_unique<SolReader>(
      [this, alive = alive_.watch()](const std::string& node, const std::string& bytes) {
        reactor_.post([this, alive, node, bytes] {
          if (*alive) receive(node, bytes);
        });
      },
      std::move(program));
  timer_ = reactor_.after(kLook, [this] { tick(); });
}

Consoles::~Consoles() {
  alive_.end();
  reactor_.cancel(timer_);
}

void Consoles::tick() {
  auto wanted = hooks_.wanted();
  if (listening_ || !wanted.empty()) {
    listening_ = !wanted.empty();
    reader_->want(std::move(wanted));
  }
  timer_ = reactor_.after(kLook, alive_.wrap([this] { tick(); }));
}

std::string Consoles::panic_since(const std::string& node, SteadyMs since) const {
  const auto found = consoles_.find(node);
  return found != consoles_.end() && found->second.panicked >= since ? found->second.panic : "";
}

// The text is untrusted: control characters, including colour sequences, end a line or are removed.
void Consoles::receive(const std::string& node, const std::string& bytes) {
  Console& console = consoles_[node];
  const std::string masked = console.mask.pass(bytes);
  keep(node, masked);
  for (const char c : masked) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\r' || console.line.size() >= kLongestLine)
      end_of_line(node, console);
    else if (byte >= 0x20 && byte < 0x7f)
      console.line += c;
  }
}

void Consoles::end_of_line(const std::string& node, Console& console) {
  const std::string panic = panic_in(console.line);
  console.line.clear();
  if (panic.empty()) return;
  console.panic = panic;
  console.panicked = reactor_.steady();
  hooks_.panicked(node, panic);
}

// Also restricts files that an older version of muster created.
void Consoles::make_folder() {
  if (std::exchange(folder_made_, true)) return;
  (void)::mkdir(folder_.c_str(), 0700);
  (void)::chmod(folder_.c_str(), 0700);
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder_, error))
    if (file.is_regular_file(error) && !file.is_symlink(error)) (void)::chmod(file.path().c_str(), 0600);
}

void Consoles::keep(const std::string& node, const std::string& bytes) {
  make_folder();
  const std::string path = folder_ + "/" + node + ".log";
  std::error_code error;
  if (const auto size = std::filesystem::file_size(path, error); !error && size > kMost)
    std::filesystem::rename(path, path + ".1", error);
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
  ::close(fd);
}

namespace {

constexpr std::string_view kBefore = "muster.token=";  // its first letter does not occur again
constexpr size_t kToken = 48;                          // as the boot service makes them: 24 bytes in hex

size_t matched_with(size_t matched, char c) {
  return c == kBefore[matched] ? matched + 1 : c == kBefore[0] ? 1 : 0;
}

}  // namespace

// True for terminal control sequences such as "ESC [ 31 m" (cursor movement, colours) and line ends.
bool TokenMask::is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (escape_ == Escape::begun) {
    escape_ = c == '[' ? Escape::sequence : Escape::none;
    return true;
  }
  if (escape_ == Escape::sequence) {
    if (byte >= 0x40 && byte < 0x7f) escape_ = Escape::none;
    return true;
  }
  if (byte == 0x1b) escape_ = Escape::begun;
  return byte < 0x20 || byte == 0x7f;
}

std::string TokenMask::pass(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    if (is_control(c)) {
      // A line end inside a token comes from line wrapping.
      if (hiding_ && hidden_ >= kToken) hiding_ = false;
      plain_ = hiding_ ? 0 : matched_with(plain_, c);
      out += c;
      continue;
    }
    if (hiding_ && c != ' ' && c != '\'' && c != '"') {
      ++hidden_;
      continue;
    }
    hiding_ = false;
    out += c;
    matched_ = matched_with(matched_, c);
    plain_ = matched_with(plain_, c);
    if (matched_ < kBefore.size() && plain_ < kBefore.size()) continue;
    out += "***";
    matched_ = plain_ = hidden_ = 0;
    hiding_ = true;
  }
  return out;
}

}  // namespace muster
