// ScopeExit: calls a function when the scope is left, however it is left.
#pragma once

#include <utility>

namespace polder {

template <class F>
class [[nodiscard]] ScopeExit {
public:
    explicit ScopeExit(F function) : function_(std::move(function)) {}
    ScopeExit(const ScopeExit&) = delete;
    ScopeExit& operator=(const ScopeExit&) = delete;
    ~ScopeExit() { function_(); }

private:
    F function_;
};

} // namespace polder
