// ScopeExit: calls a function at the end of the scope, also after a return or an exception.
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
