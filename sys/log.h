// Log for operators: one line per message to stderr, with key=value fields. The journal table is the
// authoritative record, not the log. Thread: any. No secrets: callers pass only their names.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::log {

enum class Level { debug, info, warning, error };
using Fields = std::vector<std::pair<std::string_view, std::string>>;

void set_level(Level level);
void write(Level level, std::string_view message, const Fields& fields = {});

inline void debug(std::string_view m, const Fields& f = {}) { write(Level::debug, m, f); }
inline void info(std::string_view m, const Fields& f = {}) { write(Level::info, m, f); }
inline void warning(std::string_view m, const Fields& f = {}) { write(Level::warning, m, f); }
inline void error(std::string_view m, const Fields& f = {}) { write(Level::error, m, f); }

}  // namespace muster::log
