// Faults: the fixture of the fault sweep. `sweep` runs a flow of API calls again and again, and lets one more call for memory or a
// thread fail each time; where a device is a proxy, then one more call of the other implementation. One thread; it has no other tests beside it.
#pragma once

#include "../api/support/fixture.h"
#include "driver_calls.h"
#include "foreign_calls.h"
#include "injection.h"

#include <CL/cl_ext_polder.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <thread>

namespace polder::test {

// Results of the calls of a flow. Fixed room: nothing may be allocated meanwhile.
class Answers {
public:
    bool note(cl_int answer) {
        if (answer != CL_SUCCESS && count_ < errors_.size())
            errors_[count_++] = answer;
        return answer == CL_SUCCESS;
    }
    [[nodiscard]] size_t count() const { return count_; }
    [[nodiscard]] bool are_all_of_resources() const {
        return std::all_of(errors_.begin(), errors_.begin() + static_cast<ptrdiff_t>(count_), [](cl_int error) {
            return error == CL_OUT_OF_HOST_MEMORY || error == CL_OUT_OF_RESOURCES ||
                   error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_MAP_FAILURE ||
                   error == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        });
    }
    [[nodiscard]] std::string text() const {
        std::string all;
        for (size_t i = 0; i < count_; ++i)
            all += " " + std::to_string(errors_[i]);
        return all;
    }

private:
    std::array<cl_int, 64> errors_{};
    size_t count_ = 0;
};

class Faults : public ContextTest {
protected:
    static constexpr size_t bytes = 64 << 10;
    static constexpr size_t ints = bytes / sizeof(cl_int);

    void SetUp() override {
        ContextTest::SetUp();
        foreign.emplace();
        driver_calls.emplace();
        const char* const named = std::getenv("POCL_DEVICES");
        ASSERT_EQ(foreign->are_there(), named && std::strstr(named, "proxy")) << "the proxy's device is not there";
        for (cl_device_id device : devices)
            queues.push_back(make_queue(device));
        second = make_queue(devices[0]);
        program = build("kernel void add(global int* data, int value) { data[get_global_id(0)] += value; }");
        add = make_kernel(program, "add");
        statistics = reinterpret_cast<clGetMemoryStatisticsPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemoryStatisticsPOLDER"));
        trim = reinterpret_cast<clTrimMemoryPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clTrimMemoryPOLDER"));
        ASSERT_NE(statistics, nullptr);
        ASSERT_NE(trim, nullptr);
        contents.resize(ints);
        seen.resize(ints);
        for (size_t i = 0; i < ints; ++i)
            contents[i] = static_cast<cl_int>(i * 7);
        expect_works();
    }

    bool run_kernel(Answers& answers, size_t device, cl_mem buffer, cl_int value, cl_uint waits = 0,
                    const cl_event* list = nullptr, cl_event* event = nullptr) {
        const size_t items = ints;
        return answers.note(clSetKernelArg(add, 0, sizeof buffer, &buffer)) &&
               answers.note(clSetKernelArg(add, 1, sizeof value, &value)) &&
               answers.note(
                   clEnqueueNDRangeKernel(queues[device], add, 1, nullptr, &items, nullptr, waits, list, event));
    }
    cl_mem create(Answers& answers, cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr) {
        cl_int error = CL_SUCCESS;
        const cl_mem made = clCreateBuffer(context, flags, bytes, host, &error);
        answers.note(error);
        return made;
    }
    void finish_all() {
        for (const OwnedQueue& each : queues)
            clFinish(each);
        clFinish(second);
    }

    // A buffer is used on every device and has the right bytes at the end.
    void expect_works() {
        Answers answers;
        const cl_mem buffer = create(answers);
        ASSERT_TRUE(buffer);
        EXPECT_TRUE(answers.note(
            clEnqueueWriteBuffer(queues[0], buffer, CL_TRUE, 0, bytes, contents.data(), 0, nullptr, nullptr)));
        cl_int sum = 0;
        for (size_t device = 0; device < devices.size(); ++device) {
            EXPECT_TRUE(run_kernel(answers, device, buffer, static_cast<cl_int>(device + 1)));
            EXPECT_EQ(clFinish(queues[device]), CL_SUCCESS);
            sum += static_cast<cl_int>(device + 1);
        }
        EXPECT_TRUE(
            answers.note(clEnqueueReadBuffer(queues[0], buffer, CL_TRUE, 0, bytes, seen.data(), 0, nullptr, nullptr)));
        bool right = true;
        for (size_t i = 0; i < ints; ++i)
            right = right && seen[i] == contents[i] + sum;
        EXPECT_TRUE(right);
        EXPECT_EQ(answers.text(), "");
        EXPECT_EQ(clReleaseMemObject(buffer), CL_SUCCESS);
    }
    [[nodiscard]] cl_ulong live_blocks() {
        std::array<cl_memory_statistics_polder, 8> entries{};
        cl_uint space_count = 0;
        EXPECT_EQ(statistics(context, 8, entries.data(), &space_count), CL_SUCCESS);
        cl_ulong blocks = 0;
        for (cl_uint i = 0; i < space_count; ++i)
            blocks += entries[i].live_blocks;
        return blocks;
    }

    // The reserved bytes of the devices' own memory, after unused memory has been given back.
    [[nodiscard]] cl_ulong reserved_bytes() {
        std::array<cl_memory_statistics_polder, 8> entries{};
        cl_uint space_count = 0;
        EXPECT_EQ(statistics(context, 8, entries.data(), &space_count), CL_SUCCESS);
        for (cl_uint i = 0; i < space_count; ++i) {
            EXPECT_EQ(trim(context, entries[i].space), CL_SUCCESS);
        }
        EXPECT_EQ(statistics(context, 8, entries.data(), &space_count), CL_SUCCESS);
        cl_ulong total = 0;
        for (cl_uint i = 0; i < space_count; ++i)
            total += entries[i].space != 0 ? entries[i].reserved_bytes : 0;
        return total;
    }

    using Flow = std::function<void(Answers&)>;
    // One failure of the flow, and everything that must hold after it. False: no call was left to fail.
    bool fail_at(Fault fault, int64_t n, const Flow& flow) {
        Answers answers;
        bool struck = false;
        {
            const Injection injection{fault, n};
            flow(answers);
            struck = Injection::has_struck();
        }
        finish_all();
        EXPECT_TRUE(answers.are_all_of_resources()) << answers.text();
        return struck;
    }
    // The same for a failure of the other implementation, or of the driver of GPUs. Commands execute, and are waited for, while its calls may fail.
    template <class Calls>
    bool fail_call_at(const Calls& calls, int code, int64_t n, const Flow& flow) {
        Answers answers;
        calls.fail(n, code);
        flow(answers);
        finish_all();
        const char* const failed = calls.failed();
        calls.fail(-1, 0);
        EXPECT_TRUE(answers.are_all_of_resources()) << answers.text() << " after " << (failed ? failed : "none");
        return failed != nullptr;
    }
    struct Held {
        int64_t blocks;  // of host memory
        int64_t foreign_objects;
    };
    [[nodiscard]] Held held() const { return {outstanding_blocks(), foreign->live_objects()}; }
    // The callback thread, and threads of other implementations, may still be releasing what is complete.
    [[nodiscard]] bool has_grown(const Held& before, int tries_max) const {
        for (int tries = 0; held().blocks > before.blocks || held().foreign_objects > before.foreign_objects; ++tries) {
            if (tries == tries_max)
                return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return false;
    }
    // The figure as soon as it is `expected`, or after two seconds: the callback thread may still be releasing what is complete.
    [[nodiscard]] static cl_ulong settled(cl_ulong expected, const std::function<cl_ulong()>& figure) {
        for (int tries = 0; tries < 2000; ++tries) {
            if (figure() == expected)
                return expected;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return figure();
    }
    // Once for each call that `fail_at(n)` makes fail. Returns how many there were.
    int64_t sweep_calls(const char* name, const Flow& flow, const std::function<bool(int64_t n)>& fail_at_call) {
        Answers warm;
        // Now objects that are made once exist, and the callback thread's lists of freed objects are full.
        for (int run = 0; run < 12; ++run) {
            flow(warm);
            finish_all();
        }
        EXPECT_EQ(warm.text(), "");
        const cl_ulong blocks = live_blocks();
        const cl_ulong reserved = reserved_bytes();
        // No list of these objects may grow.
        const Held objects{std::numeric_limits<int64_t>::max(), foreign->live_objects()};
        bool struck = true;
        int64_t strikes = 0;
        for (int64_t n = 0; struck && !HasFailure(); ++n) {
            SCOPED_TRACE(std::string(name) + " number " + std::to_string(n));
            int64_t growths = 0;
            // Lists of freed objects, which each thread has, may still grow: up to 32 objects each (base/thread_free_list.h).
            constexpr int repeats = 40;
            for (int repeat = 0; struck && growths == repeat && repeat < repeats; ++repeat) {
                // Memory that is trimmed now is reserved again in each repetition.
                static_cast<void>(reserved_bytes());
                const Held before = held();
                struck = fail_at_call(n);
                expect_works();
                static_cast<void>(reserved_bytes());
                // While it may still be a list, there is no reason to wait long.
                growths += has_grown(before, repeat < 5 ? 20 : 200) ? 1 : 0;
            }
            EXPECT_LT(growths, repeats) << "host memory leaks each time";
            EXPECT_FALSE(has_grown(objects, 2000)) << "foreign objects leak";
            EXPECT_EQ(settled(blocks, [&] { return live_blocks(); }), blocks) << "device memory leaks";
            // Also: the next flow has to reserve memory again, which may fail too.
            EXPECT_EQ(settled(reserved, [&] { return reserved_bytes(); }), reserved) << "reserved device memory leaks";
            EXPECT_LT(n, 5000);
            strikes += struck ? 1 : 0;
        }
        return strikes;
    }
    // Every call of the other implementation fails in turn. Returns how many there were, 0 when there is no such device.
    int64_t sweep_foreign(const Flow& flow) {
        int64_t strikes = 0;
        // The second one is one of those that mean nothing to the application.
        for (const cl_int code : {CL_OUT_OF_HOST_MEMORY, CL_INVALID_VALUE})
            if (foreign->are_there())
                strikes =
                    sweep_calls("foreign call", flow, [&](int64_t n) { return fail_call_at(*foreign, code, n, flow); });
        return strikes;
    }
    // Whether the calls of the driver of GPUs fail, and nothing else.
    [[nodiscard]] bool sweeps_driver() const {
        const char* const only = std::getenv("POLDER_TEST_FAULTS");
        return only && std::strcmp(only, "driver") == 0 && driver_calls->are_there();
    }
    // Every one fails in turn. Returns how many there were.
    int64_t sweep_driver(const Flow& flow) {
        constexpr int invalid_value = 1, out_of_memory = 2;
        int64_t strikes = 0;
        for (const int code : {out_of_memory, invalid_value})
            strikes =
                sweep_calls("driver call", flow, [&](int64_t n) { return fail_call_at(*driver_calls, code, n, flow); });
        return strikes;
    }
    // All faults, or with POLDER_TEST_FAULTS=driver those of the driver alone. Returns how many calls of it, or of another implementation, there
    // were.
    int64_t sweep(const Flow& flow) {
        if (sweeps_driver())
            return sweep_driver(flow);
        for (const Fault fault : {Fault::host_memory, Fault::pages, Fault::thread}) {
            const int64_t strikes =
                sweep_calls(name_of(fault), flow, [&](int64_t n) { return fail_at(fault, n, flow); });
            // Every flow over several memories allocates.
            EXPECT_TRUE(fault != Fault::host_memory || strikes > 0 || devices.size() == 1);
        }
        return sweep_foreign(flow);
    }

    std::optional<ForeignCalls> foreign;
    std::optional<DriverCalls> driver_calls;
    std::vector<OwnedQueue> queues;
    OwnedQueue second;  // on the first device
    OwnedProgram program;
    OwnedKernel add;
    clGetMemoryStatisticsPOLDER_fn statistics = nullptr;
    clTrimMemoryPOLDER_fn trim = nullptr;
    std::vector<cl_int> contents;
    std::vector<cl_int> seen;
};

}  // namespace polder::test
