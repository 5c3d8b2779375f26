// Result<T>: a value or an Error. The one way in which a muster function reports a failure.
//
// An Error has a code for what the caller may do next, a message for people, and the context added on the way
// up. A function either returns an Error or logs it, never both. Two codes must not be confused:
// `unavailable` means that nothing happened and a retry is safe; `timeout` that the outcome is unknown: read
// the state before doing anything again. Thread safety: value types, no shared state.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace muster {

enum class Code {
  invalid,      // the input is wrong; retrying the same input cannot help
  not_found,    // the named thing does not exist
  conflict,     // the thing is in an unexpected state
  denied,       // rejected by a safety rule, by authentication, or by authorisation
  unavailable,  // nothing was done; safe to retry later
  timeout,      // the outcome is unknown; probe before anything else
  failed,       // the operation was carried out and failed
  corrupt,      // data does not match its digest or format
  cancelled,    // stopped on request
};

std::string_view to_string(Code code);
// Inverse of to_string; Code::failed for an unknown word.
Code code_from_string(std::string_view word);

struct [[nodiscard]] Error {
  Code code = Code::failed;
  std::string message;

  // "opening /dev/nvme0n1: permission denied": the context goes in front.
  Error with(std::string_view context) && {
    message = std::string(context) + ": " + message;
    return std::move(*this);
  }
};

struct Ok {};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    assert(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    assert(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    assert(ok());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T value_or(T fallback) const& { return ok() ? value() : std::move(fallback); }

  const Error& error() const& {
    assert(!ok());
    return std::get<1>(state_);
  }
  Error&& error() && {
    assert(!ok());
    return std::get<1>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<Ok>;

inline Error fail(Code code, std::string message) { return Error{code, std::move(message)}; }

}  // namespace muster

#define MUSTER_CONCAT_(a, b) a##b
#define MUSTER_CONCAT(a, b) MUSTER_CONCAT_(a, b)
// TRY(auto x, expression): unwraps, or returns the error from the enclosing function.
#define TRY(lhs, expr)                                              \
  auto MUSTER_CONCAT(try_result_, __LINE__) = (expr);               \
  if (!MUSTER_CONCAT(try_result_, __LINE__).ok())                   \
    return std::move(MUSTER_CONCAT(try_result_, __LINE__)).error(); \
  lhs = std::move(MUSTER_CONCAT(try_result_, __LINE__)).value()
// Like TRY, for a Status.
#define TRY_(expr)                                                    \
  do {                                                                \
    auto MUSTER_CONCAT(try_result_, __LINE__) = (expr);               \
    if (!MUSTER_CONCAT(try_result_, __LINE__).ok())                   \
      return std::move(MUSTER_CONCAT(try_result_, __LINE__)).error(); \
  } while (false)
