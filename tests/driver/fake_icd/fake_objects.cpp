#include "fake_objects.h"

#include <cstdlib>
#include <map>

namespace polder::fake_icd {
namespace {

struct State {
    struct Fault {
        cl_int code = CL_SUCCESS;
        int good = 0;
    };
    std::mutex mutex;
    // Found without a string, so that only the first call of a name allocates.
    std::map<std::string, Fault, std::less<>> faults;
    std::map<std::string, uint64_t, std::less<>> calls;
    std::map<std::string, Kernel, std::less<>> kernels;
    int64_t calls_until_failure = -1;
    cl_int failure_of_call = CL_SUCCESS;
    const char* failed_call = nullptr;

    void count(const char* what) {
        if (const auto known = calls.find(what); known != calls.end())
            ++known->second;
        else
            calls.emplace(what, 1);
    }
};

// Never destroyed: threads of queues may outlive main.
State& state() {
    static State& the_state = *new State;
    return the_state;
}

} // namespace

std::atomic<int64_t> live_objects{0};
std::atomic<int64_t> live_queues{0};

cl_int enter(const char* call) {
    State& all = state();
    const std::lock_guard lock(all.mutex);
    all.count(call);
    if (all.calls_until_failure >= 0 && all.calls_until_failure-- == 0) {
        all.failed_call = call;
        return all.failure_of_call;
    }
    const auto found = all.faults.find(call);
    if (found == all.faults.end())
        return CL_SUCCESS;
    return found->second.good-- > 0 ? CL_SUCCESS : found->second.code;
}

void count(const char* what) {
    const std::lock_guard lock(state().mutex);
    state().count(what);
}

Kernel find_kernel(const std::string& name) {
    State& all = state();
    const std::lock_guard lock(all.mutex);
    const auto found = all.kernels.find(name);
    return found == all.kernels.end() ? Kernel{} : found->second;
}

uint64_t now_ns() {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

} // namespace polder::fake_icd

using namespace polder::fake_icd;

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

FAKE_EXPORT void fake_icd_register_kernel(const char* name, const Kernel* kernel) {
    const std::lock_guard lock(state().mutex);
    state().kernels[name] = *kernel;
}

FAKE_EXPORT void fake_icd_fail(const char* call, cl_int code, int good) {
    const std::lock_guard lock(state().mutex);
    if (code == CL_SUCCESS)
        state().faults.erase(call);
    else
        state().faults[call] = {code, good};
}

FAKE_EXPORT void fake_icd_fail_call(int64_t index, cl_int code) {
    const std::lock_guard lock(state().mutex);
    state().calls_until_failure = index;
    state().failure_of_call = code;
    state().failed_call = nullptr;
}

FAKE_EXPORT const char* fake_icd_failed_call() {
    const std::lock_guard lock(state().mutex);
    return state().failed_call;
}

FAKE_EXPORT uint64_t fake_icd_calls(const char* call) {
    const std::lock_guard lock(state().mutex);
    return state().calls[call];
}

FAKE_EXPORT int64_t fake_icd_live() { return live_objects; }
FAKE_EXPORT int64_t fake_icd_live_queues() { return live_queues; }

// --- events and queues ---

void _cl_event::end(cl_int with) {
    {
        const std::lock_guard lock(mutex);
        status = with;
    }
    changed.notify_all();
}

cl_int _cl_event::wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return status <= CL_COMPLETE; });
    return status;
}

_cl_command_queue::_cl_command_queue(cl_context of) : OfContext(of), thread_([this] { run(); }) { ++live_queues; }

// Executes what is left.
_cl_command_queue::~_cl_command_queue() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
    --live_queues;
}

void _cl_command_queue::add(Command command) {
    {
        const std::lock_guard lock(mutex_);
        commands_.push_back(std::move(command));
    }
    changed_.notify_all();
}

void _cl_command_queue::run() {
    for (;;) {
        Command command;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return ending_ || !commands_.empty(); });
            if (commands_.empty())
                return;
            command = std::move(commands_.front());
            commands_.pop_front();
        }
        cl_int status = CL_COMPLETE;
        for (const auto& event : command.waits)
            if (event->wait() < 0)
                status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        command.event->start_ns = now_ns();
        if (status == CL_COMPLETE)
            if (const cl_int fault = enter("execute"))
                status = fault;
        if (status == CL_COMPLETE && command.work)
            command.work();
        command.event->end_ns = now_ns();
        command.event->end(status);
    }
}
