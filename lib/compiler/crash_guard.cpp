#include "crash_guard.h"

#include <base/mutex.h>

#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/ErrorHandling.h>
#include <mutex>

namespace polder::compiler {
namespace {

thread_local std::string fatal_message;

// LLVM ends the process when this returns.
void on_fatal_error(void*, const char* reason, bool) {
    fatal_message = reason != nullptr ? reason : "";
    if (llvm::CrashRecoveryContext* context = llvm::CrashRecoveryContext::GetCurrent())
        context->HandleExit(70);
}

void install_fatal_error_handler() {
    static std::once_flag once;
    std::call_once(once, [] { llvm::install_fatal_error_handler(on_fatal_error); });
}

// Leaked: compilations may still run while the process exits.
struct Users {
    Mutex mutex;
    int count POLDER_GUARDED_BY(mutex) = 0;
};
Users& users() {
    static auto* const instance = new Users;
    return *instance;
}

class SignalHandlers {
public:
    SignalHandlers() {
        Lock lock(users().mutex);
        if (users().count++ == 0)
            llvm::CrashRecoveryContext::Enable();
    }
    ~SignalHandlers() {
        Lock lock(users().mutex);
        if (--users().count == 0)
            llvm::CrashRecoveryContext::Disable();
    }
    SignalHandlers(const SignalHandlers&) = delete;
    SignalHandlers& operator=(const SignalHandlers&) = delete;
};

} // namespace

std::optional<std::string> run_guarded(const std::function<void()>& work) {
    install_fatal_error_handler();
    SignalHandlers handlers;
    fatal_message.clear();
    llvm::CrashRecoveryContext context;
    if (context.RunSafely(work))
        return std::nullopt;
    return "internal compiler error" + (fatal_message.empty() ? "" : ": " + fatal_message);
}

} // namespace polder::compiler
