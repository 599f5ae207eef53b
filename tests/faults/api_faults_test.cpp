// Every allocation of host memory, every reserve of pages, every start of a thread and every call of another OpenCL implementation that a
// flow makes fails in turn.
// After each: every call has returned success or an error of resources; the next commands work and compute the right
// bytes; no block of device memory and no growing amount of host memory is left behind.
//
// Programs are built and kernels launched once before the sweep, because the compiler without memory is tested elsewhere.
#include "fault_sweep.h"

namespace polder::test {
namespace {

TEST_F(Faults, CreateWriteReadRelease) {
    const int64_t driver_calls_made = sweep([&](Answers& answers) {
        const cl_mem buffer = create(answers);
        if (!buffer)
            return;
        answers.note(
            clEnqueueWriteBuffer(queues.back(), buffer, CL_FALSE, 0, bytes, contents.data(), 0, nullptr, nullptr));
        // In the middle, so that the newest bytes are in three pieces: that takes host memory.
        answers.note(clEnqueueWriteBuffer(queues[0], buffer, CL_FALSE, bytes / 2, bytes / 4, contents.data(), 0,
                                          nullptr, nullptr));
        answers.note(clEnqueueReadBuffer(queues[0], buffer, CL_TRUE, 0, bytes, seen.data(), 0, nullptr, nullptr));
        answers.note(clReleaseMemObject(buffer));
    });
    EXPECT_TRUE(driver_calls_made > 5 || !sweeps_driver()) << driver_calls_made;
}

// Memory for several buffers at once, beside each number of live ones: lists of blocks grow at some of them, and only once.
TEST_F(Faults, KernelsThatNeedMemoryForThreeBuffers) {
    const OwnedProgram sums = build("kernel void sum(global int* to, global const int* a, global const int* b) {"
                                    "    to[get_global_id(0)] = a[get_global_id(0)] + b[get_global_id(0)]; }");
    const OwnedKernel sum = make_kernel(sums, "sum");
    const auto run = [&](Answers& answers) {
        std::array<cl_mem, 3> made{};
        for (cl_mem& each : made)
            each = create(answers);
        bool is_set = true;
        for (cl_uint i = 0; i < 3; ++i)
            is_set = is_set && made[i] && answers.note(clSetKernelArg(sum, i, sizeof(cl_mem), &made[i]));
        const size_t items = 16;
        if (is_set)
            answers.note(clEnqueueNDRangeKernel(queues.back(), sum, 1, nullptr, &items, nullptr, 0, nullptr, nullptr));
        for (const cl_mem each : made)
            if (each)
                answers.note(clReleaseMemObject(each));
    };
    Answers none;
    run(none);
    finish_all();
    std::vector<cl_mem> live;
    for (int count = 0; count < 140 && !HasFailure(); ++count) {
        SCOPED_TRACE(count);
        const cl_ulong blocks = live_blocks();
        bool struck = true;
        for (int64_t n = 0; struck && !HasFailure(); ++n) {
            SCOPED_TRACE(n);
            struck = fail_at(Fault::host_memory, n, run);
            EXPECT_EQ(live_blocks(), blocks) << "device memory leaks";
        }
        live.push_back(create(none));
        EXPECT_TRUE(none.note(
            clEnqueueFillBuffer(queues.back(), live.back(), &count, sizeof count, 0, bytes, 0, nullptr, nullptr)));
        finish_all();
    }
    for (const cl_mem each : live)
        clReleaseMemObject(each);
    EXPECT_EQ(none.text(), "");
}

TEST_F(Faults, KernelsOnEveryDevice) {
    const int64_t foreign_calls = sweep([&](Answers& answers) {
        const cl_mem buffer = create(answers, CL_MEM_COPY_HOST_PTR, contents.data());
        if (!buffer)
            return;
        for (size_t device = 0; device < devices.size(); ++device) {
            run_kernel(answers, device, buffer, 1);
            answers.note(clFinish(queues[device]));
        }
        answers.note(clReleaseMemObject(buffer));
    });
    EXPECT_TRUE(foreign_calls > 5 || !foreign->are_there()) << foreign_calls;
}

TEST_F(Faults, FillCopyAndRectangles) {
    sweep([&](Answers& answers) {
        const cl_mem from = create(answers);
        const cl_mem to = create(answers);
        const cl_uint pattern = 0x01020304;
        const size_t origin[3] = {0, 0, 0}, region[3] = {64, 16, 2};
        if (from && to) {
            answers.note(clEnqueueFillBuffer(queues[0], from, &pattern, 4, 0, bytes, 0, nullptr, nullptr));
            answers.note(clFinish(queues[0]));
            answers.note(clEnqueueCopyBuffer(queues.back(), from, to, 0, bytes / 2, bytes / 2, 0, nullptr, nullptr));
            answers.note(clFinish(queues.back()));
            answers.note(clEnqueueCopyBufferRect(queues[0], to, from, origin, origin, region, 256, 256 * 16, 256,
                                                 256 * 16, 0, nullptr, nullptr));
            answers.note(clFinish(queues[0]));
        }
        for (const cl_mem each : {from, to})
            if (each)
                answers.note(clReleaseMemObject(each));
    });
}

TEST_F(Faults, MapWriteUnmap) {
    sweep([&](Answers& answers) {
        const cl_mem buffer = create(answers);
        if (!buffer)
            return;
        run_kernel(answers, devices.size() - 1, buffer, 3);
        cl_int error = CL_SUCCESS;
        void* const mapped = clEnqueueMapBuffer(queues.back(), buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0,
                                                nullptr, nullptr, &error);
        if (answers.note(error)) {
            std::memset(mapped, 1, bytes);
            // An unmap that failed for lack of memory is tried again: the mapping must not stay.
            while (!answers.note(clEnqueueUnmapMemObject(queues.back(), buffer, mapped, 0, nullptr, nullptr))) {
            }
        }
        answers.note(clReleaseMemObject(buffer));
    });
}

TEST_F(Faults, SubBuffersOnDifferentDevices) {
    sweep([&](Answers& answers) {
        const cl_mem buffer = create(answers, CL_MEM_COPY_HOST_PTR, contents.data());
        if (!buffer)
            return;
        const cl_uchar one = 1;
        for (size_t part = 0; part < 2; ++part) {
            const cl_buffer_region region{part * bytes / 2, bytes / 2};
            cl_int error = CL_SUCCESS;
            const cl_mem sub =
                clCreateSubBuffer(buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
            if (!answers.note(error))
                continue;
            const OwnedQueue& on = part == 0 ? queues[0] : queues.back();
            answers.note(clEnqueueFillBuffer(on, sub, &one, 1, 0, bytes / 4, 0, nullptr, nullptr));
            answers.note(clFinish(on));
            answers.note(clReleaseMemObject(sub));
        }
        answers.note(clEnqueueReadBuffer(queues[0], buffer, CL_TRUE, 0, bytes, seen.data(), 0, nullptr, nullptr));
        answers.note(clReleaseMemObject(buffer));
    });
}

TEST_F(Faults, MigrateBackAndForth) {
    sweep([&](Answers& answers) {
        const cl_mem buffer = create(answers, CL_MEM_COPY_HOST_PTR, contents.data());
        if (!buffer)
            return;
        for (const OwnedQueue& each : queues) {
            answers.note(clEnqueueMigrateMemObjects(each, 1, &buffer, 0, 0, nullptr, nullptr));
            answers.note(clFinish(each));
        }
        answers.note(
            clEnqueueMigrateMemObjects(queues.back(), 1, &buffer, CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr, nullptr));
        answers.note(clFinish(queues.back()));
        answers.note(clReleaseMemObject(buffer));
    });
}

TEST_F(Faults, Contexts) {
    sweep([&](Answers& answers) {
        cl_int error = CL_SUCCESS;
        const cl_context other =
            clCreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr, &error);
        if (answers.note(error))
            answers.note(clReleaseContext(other));
    });
}

TEST_F(Faults, KernelsArgumentsAndClones) {
    sweep([&](Answers& answers) {
        cl_int error = CL_SUCCESS;
        const cl_kernel made = clCreateKernel(program, "add", &error);
        if (!answers.note(error))
            return;
        const cl_int value = 3;
        answers.note(clSetKernelArg(made, 1, sizeof value, &value));
        const cl_kernel clone = clCloneKernel(made, &error);
        if (answers.note(error))
            answers.note(clReleaseKernel(clone));
        answers.note(clReleaseKernel(made));
    });
}

TEST_F(Faults, SharedVirtualMemory) {
    sweep([&](Answers& answers) {
        void* const memory = clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0);
        if (!memory)
            return;  // the only way in which it reports a failure
        const cl_uint pattern = 5;
        answers.note(clEnqueueSVMMemFill(queues[0], memory, &pattern, 4, bytes, 0, nullptr, nullptr));
        answers.note(clFinish(queues[0]));
        clSVMFree(context, memory);
    });
}

// Only calls of the other implementation fail: the compiler without memory is tested elsewhere.
TEST_F(Faults, ProgramsThatAnotherImplementationBuilds) {
    if (!foreign->are_there())
        GTEST_SKIP() << "needs another implementation";
    const char* const text = "kernel void add(global int* data, int value) { data[get_global_id(0)] += value; }";
    const Flow flow = [&](Answers& answers) {
        cl_int error = CL_SUCCESS;
        const cl_program made = clCreateProgramWithSource(context, 1, const_cast<const char**>(&text), nullptr, &error);
        if (!answers.note(error))
            return;
        const cl_int built = clBuildProgram(made, 0, nullptr, "", nullptr, nullptr);
        const cl_kernel kernel = built == CL_SUCCESS ? clCreateKernel(made, "add", &error) : nullptr;
        const cl_mem buffer = kernel ? create(answers) : nullptr;
        // A refused build returns CL_BUILD_PROGRAM_FAILURE, which is no error of resources but allowed.
        if (built != CL_BUILD_PROGRAM_FAILURE)
            answers.note(built);
        answers.note(error);
        if (buffer) {
            const cl_int value = 1;
            const size_t items = ints;
            answers.note(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
            answers.note(clSetKernelArg(kernel, 1, sizeof value, &value));
            answers.note(
                clEnqueueNDRangeKernel(queues.back(), kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr));
            answers.note(clFinish(queues.back()));
            answers.note(clReleaseMemObject(buffer));
        }
        if (kernel)
            answers.note(clReleaseKernel(kernel));
        answers.note(clReleaseProgram(made));
    };
    EXPECT_GT(sweep_foreign(flow), 5);
}

TEST_F(Faults, Queues) {
    sweep([&](Answers& answers) {
        for (const cl_device_id device : devices) {
            for (const cl_command_queue_properties bits : {0, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE}) {
                const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, bits | CL_QUEUE_PROFILING_ENABLE, 0};
                cl_int error = CL_SUCCESS;
                const cl_command_queue made = clCreateCommandQueueWithProperties(context, device, properties, &error);
                if (!answers.note(error))
                    continue;
                cl_event marker = nullptr;
                if (answers.note(clEnqueueMarkerWithWaitList(made, 0, nullptr, &marker)))
                    answers.note(clReleaseEvent(marker));
                answers.note(clFinish(made));
                answers.note(clReleaseCommandQueue(made));
            }
        }
    });
}

// An unmap behind a user event that fails: the buffer stays mapped, also when another map was made in between.
TEST_F(Faults, UnmapBehindAUserEventThatFails) {
    sweep([&](Answers& answers) {
        cl_int error = CL_SUCCESS;
        const cl_event gate = clCreateUserEvent(context, &error);
        if (!answers.note(error))
            return;
        const cl_mem buffer = create(answers);
        std::array<void*, 2> mapped{};
        const auto map = [&](size_t i) {
            void* const address = clEnqueueMapBuffer(queues[0], buffer, CL_TRUE, CL_MAP_WRITE, i * bytes / 2, bytes / 2,
                                                     0, nullptr, nullptr, &error);
            mapped[i] = answers.note(error) ? address : nullptr;
        };
        if (buffer)
            map(0);
        OwnedQueue& other = queues.size() > 1 ? queues[1] : second;
        if (mapped[0])
            answers.note(clEnqueueUnmapMemObject(other, buffer, mapped[0], 1, &gate, nullptr));
        if (buffer)
            map(1);
        answers.note(clSetUserEventStatus(gate, CL_OUT_OF_RESOURCES));
        finish_all();
        for (void* const address : mapped)
            for (int attempt = 0; address && attempt < 2; ++attempt)  // one may be the call that fails
                if (answers.note(clEnqueueUnmapMemObject(queues[0], buffer, address, 0, nullptr, nullptr)))
                    break;
        answers.note(clReleaseEvent(gate));
        if (buffer)
            answers.note(clReleaseMemObject(buffer));
    });
}

// Kernels on every device, each after the one before it, the first after a user event. Those that could be enqueued run or
// fail, whatever fails while the user event is set: nothing may wait for ever.
TEST_F(Faults, KernelsBehindAUserEvent) {
    sweep([&](Answers& answers) {
        cl_int error = CL_SUCCESS;
        const cl_event gate = clCreateUserEvent(context, &error);
        if (!answers.note(error))
            return;
        const cl_mem buffer = create(answers, CL_MEM_COPY_HOST_PTR, contents.data());
        std::array<cl_event, 6> chain{gate};
        size_t length = 1;
        while (buffer && length < chain.size()) {
            const size_t device = length % devices.size();
            if (!run_kernel(answers, device, buffer, 1, 1, &chain[length - 1], &chain[length]))
                break;
            answers.note(clSetEventCallback(chain[length], CL_COMPLETE, [](cl_event, cl_int, void*) {}, nullptr));
            ++length;
        }
        answers.note(clSetUserEventStatus(gate, CL_COMPLETE));
        finish_all();
        for (size_t i = 0; i < length; ++i) {
            cl_int status = CL_SUCCESS;
            answers.note(clGetEventInfo(chain[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
            EXPECT_LE(status, CL_COMPLETE);
            answers.note(status);
            answers.note(clReleaseEvent(chain[i]));
        }
        if (buffer)
            answers.note(clReleaseMemObject(buffer));
    });
}

}  // namespace
}  // namespace polder::test
