// OptionalWork: while an object of it lives, compilations of its thread end soon, as failures, once their results are not needed any more: when the process ends, or
// when nothing refers to the program any more. The next request for the code begins anew.
//
// On the stack of the thread that calls the compiler. The functions may be called on any thread; they concern the calling one.
#pragma once

#include <functional>

namespace polder::compiler {

class OptionalWork {
public:
    // The compiler calls it between its steps, possibly from another thread than this one, while this thread waits. It must not wait.
    using IsUnneeded = std::function<bool()>;

    explicit OptionalWork(IsUnneeded is_unneeded);
    OptionalWork(const OptionalWork&) = delete;
    OptionalWork& operator=(const OptionalWork&) = delete;
    ~OptionalWork();

    // Whether this thread's work is optional and not needed any more.
    [[nodiscard]] static bool is_unneeded();
    // What decides about this thread's work; empty when the work is not optional. The compiler hands it to the thread that compiles.
    [[nodiscard]] static IsUnneeded of_this_thread();

private:
    const IsUnneeded is_unneeded_;
    const OptionalWork* const outer_;
};

// Whether a compilation may continue while exit() destroys static objects, until the process ends. Not when LLVM is a shared library, whose static objects
// are destroyed, too (lib/api/no_destructors.cpp).
[[nodiscard]] bool may_outlive_static_objects();

}  // namespace polder::compiler
