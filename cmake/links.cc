// The program of the link checks (cmake/folders.cmake). It does nothing: what is checked is that it links.
#include <string>

// What all_drivers.cc of a program defines, above the folders that call it.
namespace muster {
[[gnu::weak]] void power_drivers() {}
[[gnu::weak]] void step_modules() {}
[[gnu::weak]] void find_step_module(const std::string&) {}
}  // namespace muster

int main() { return 0; }
