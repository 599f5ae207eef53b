// The objects of the fake ICD. Each begins with the dispatch table, as an ICD's must.
#pragma once

#include "fake_icd.h"

#include <CL/cl_icd.h>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <polder/image_abi.h>
#include <string>
#include <thread>
#include <vector>

extern const cl_icd_dispatch fake_dispatch;

namespace polder::fake_icd {

extern std::atomic<int64_t> live_objects;
extern std::atomic<int64_t> live_queues;  // of these

// Counts the call; the code with which it is to fail, or CL_SUCCESS. The names are literals.
[[nodiscard]] cl_int enter(const char* call);
void count(const char* what);
[[nodiscard]] Kernel find_kernel(const std::string& name);

struct Counted {
    const cl_icd_dispatch* dispatch = &fake_dispatch;
    std::atomic<int> references{1};
    Counted() { ++live_objects; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --live_objects; }
};

template <class Object>
void retain(Object* object) {
    object->references.fetch_add(1);
}
template <class Object>
void release(Object* object) {
    if (object->references.fetch_sub(1) == 1)
        delete object;
}
// Keeps an object alive.
template <class Object>
std::shared_ptr<Object> keep(Object* object) {
    retain(object);
    return {object, [](Object* kept) { release(kept); }};
}

[[nodiscard]] uint64_t now_ns();

} // namespace polder::fake_icd

struct _cl_platform_id : polder::fake_icd::Counted {};
struct _cl_device_id : polder::fake_icd::Counted {};
struct _cl_context : polder::fake_icd::Counted {
    std::atomic<int> objects{0};  // queues, memory objects, samplers and programs
};

namespace polder::fake_icd {

// An object of a context, which is not released before it.
struct OfContext : Counted {
    explicit OfContext(cl_context of) : context(of) { ++context->objects; }
    ~OfContext() { --context->objects; }
    const cl_context context;
};

}  // namespace polder::fake_icd

struct _cl_mem : polder::fake_icd::OfContext {
    using OfContext::OfContext;
    std::shared_ptr<std::vector<std::byte>> bytes;
    size_t origin = 0;
    size_t size = 0;
    polder::ImageDescriptor image{};  // of an image, without the address
    cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
    cl_mem_flags image_flags = 0;
    [[nodiscard]] std::byte* data() const { return bytes->data() + origin; }
};

struct _cl_sampler : polder::fake_icd::OfContext {
    using OfContext::OfContext;
    uint64_t bits = 0;  // image_abi.h
};

struct _cl_event : polder::fake_icd::Counted {
    std::mutex mutex;
    std::condition_variable changed;
    cl_int status = CL_QUEUED;
    cl_ulong start_ns = 0;
    cl_ulong end_ns = 0;

    void end(cl_int with);
    [[nodiscard]] cl_int wait();
};

struct _cl_command_queue : polder::fake_icd::OfContext {
    struct Command {
        std::vector<std::shared_ptr<_cl_event>> waits;
        std::function<void()> work;
        std::shared_ptr<_cl_event> event;
    };
    explicit _cl_command_queue(cl_context of);
    ~_cl_command_queue();
    void add(Command command);

private:
    void run();
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Command> commands_;
    bool ending_ = false;
    std::thread thread_;
};

struct _cl_program : polder::fake_icd::OfContext {
    using OfContext::OfContext;
    std::string source;
    std::string log;
    bool is_built = false;
};

struct _cl_kernel : polder::fake_icd::Counted {
    polder::fake_icd::Kernel code;
    cl_uint argument_count = 0;
    struct Parameter {
        polder::driver::KernelParameter::Kind kind;
        uint32_t size;  // of a value; 0: any
        cl_mem_object_type image = 0;  // the only type that it takes; 0: any
        cl_mem_flags refused = 0;  // images that were created with it
    };
    std::vector<std::optional<Parameter>> parameters;  // one for each argument; none: not known
    struct Argument {
        std::vector<std::byte> value;  // of a buffer: its handle
        size_t local_bytes = 0;
    };
    std::vector<Argument> arguments;
};
