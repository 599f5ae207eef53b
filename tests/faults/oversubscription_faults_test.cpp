// Buffers that do not fit into the devices' memories together: each allocation, reserve of pages and start of a thread fails in turn, also while memory is
// evicted, moved together and written back. Devices of 1 MiB; the processor's memory has room for everything.
#include "fault_sweep.h"

namespace polder::test {
namespace {

class OversubscriptionFaults : public Faults {
protected:
    static constexpr size_t large_bytes = 320 << 10, large_count = 4;

    void SetUp() override {
        Faults::SetUp();
        budgets_ = reinterpret_cast<clGetMemoryBudgetsPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemoryBudgetsPOLDER"));
        ASSERT_NE(budgets_, nullptr);
        values_.resize(large_bytes / sizeof(cl_int));
    }
    // The bytes that were evicted from all devices.
    [[nodiscard]] cl_ulong evicted_bytes() const {
        std::array<cl_memory_budget_polder, 8> entries{};
        cl_uint count = 0;
        EXPECT_EQ(budgets_(context, 8, entries.data(), &count), CL_SUCCESS);
        cl_ulong bytes_evicted = 0;
        for (cl_uint i = 0; i < count; ++i)
            bytes_evicted += entries[i].evicted_bytes;
        return bytes_evicted;
    }
    cl_mem make_large(Answers& answers) {
        cl_int error = CL_SUCCESS;
        const cl_mem made = clCreateBuffer(context, CL_MEM_READ_WRITE, large_bytes, nullptr, &error);
        answers.note(error);
        return made;
    }
    // Adds to every element of a large buffer.
    bool add_to(Answers& answers, size_t device, cl_mem buffer, cl_int value, cl_uint waits = 0,
                const cl_event* list = nullptr) {
        const size_t items = large_bytes / sizeof(cl_int);
        return answers.note(clSetKernelArg(add, 0, sizeof buffer, &buffer)) &&
               answers.note(clSetKernelArg(add, 1, sizeof value, &value)) &&
               answers.note(
                   clEnqueueNDRangeKernel(queues[device], add, 1, nullptr, &items, nullptr, waits, list, nullptr));
    }
    // Runs a flow once without failures, to be sure that it evicts, then sweeps it.
    void sweep_evictions(const Flow& flow) {
        const cl_ulong before = evicted_bytes();
        Answers answers;
        flow(answers);
        finish_all();
        EXPECT_EQ(answers.text(), "");
        ASSERT_GT(evicted_bytes(), before);
        sweep(flow);
    }

    clGetMemoryBudgetsPOLDER_fn budgets_ = nullptr;
    std::vector<cl_int> values_;
};

// Each buffer is evicted and gets memory again. The result is right where every command on the buffer has succeeded.
TEST_F(OversubscriptionFaults, KernelsInTurns) {
    sweep_evictions([&](Answers& answers) {
        std::array<cl_mem, large_count> made{};
        std::array<cl_int, large_count> expected{};
        std::array<bool, large_count> is_known{};
        for (size_t i = 0; i < large_count; ++i) {
            const auto first = static_cast<cl_int>(100 * i);
            made[i] = make_large(answers);
            is_known[i] = made[i] && answers.note(clEnqueueFillBuffer(queues.back(), made[i], &first, sizeof first, 0,
                                                                      large_bytes, 0, nullptr, nullptr));
            expected[i] = first;
        }
        for (size_t i = 0; i < large_count; ++i)
            if (made[i] && add_to(answers, devices.size() - 1, made[i], 1))
                ++expected[i];
        answers.note(clFinish(queues.back()));
        for (size_t i = 0; i < large_count; ++i) {
            if (!made[i])
                continue;
            if (is_known[i] && answers.note(clEnqueueReadBuffer(queues[0], made[i], CL_TRUE, 0, large_bytes,
                                                                values_.data(), 0, nullptr, nullptr))) {
                EXPECT_TRUE(std::ranges::all_of(values_, [&](cl_int value) { return value == expected[i]; })) << i;
            }
            answers.note(clReleaseMemObject(made[i]));
        }
    });
}

// Commands that are held back have announced what they will use; they get memory when the user event is set.
TEST_F(OversubscriptionFaults, CommandsBehindAUserEvent) {
    sweep_evictions([&](Answers& answers) {
        cl_int error = CL_SUCCESS;
        const cl_event gate = clCreateUserEvent(context, &error);
        if (!answers.note(error))
            return;
        std::array<cl_mem, large_count> made{};
        for (cl_mem& each : made)
            if ((each = make_large(answers)))
                add_to(answers, devices.size() - 1, each, 1, 1, &gate);
        answers.note(clSetUserEventStatus(gate, CL_COMPLETE));
        finish_all();
        answers.note(clReleaseEvent(gate));
        for (const cl_mem each : made)
            if (each)
                answers.note(clReleaseMemObject(each));
    });
}

// A mapped range stays while others are evicted; parts of a buffer have memory of their own.
TEST_F(OversubscriptionFaults, MapsAndSubBuffers) {
    sweep_evictions([&](Answers& answers) {
        std::array<cl_mem, large_count> made{};
        for (cl_mem& each : made)
            if ((each = make_large(answers)))
                add_to(answers, devices.size() - 1, each, 1);
        answers.note(clFinish(queues.back()));
        cl_int error = CL_SUCCESS;
        void* const mapped = made[0] ? clEnqueueMapBuffer(queues.back(), made[0], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                                          4096, 8192, 0, nullptr, nullptr, &error)
                                     : nullptr;
        answers.note(error);
        for (const cl_mem each : made) {
            const cl_buffer_region region{large_bytes / 2, large_bytes / 4};
            const cl_uchar one = 1;
            const cl_mem half =
                each ? clCreateSubBuffer(each, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error)
                     : nullptr;
            if (!half) {
                answers.note(error);
                continue;
            }
            answers.note(clEnqueueFillBuffer(queues.back(), half, &one, 1, 0, region.size, 0, nullptr, nullptr));
            answers.note(clReleaseMemObject(half));
        }
        answers.note(clFinish(queues.back()));
        while (mapped && !answers.note(clEnqueueUnmapMemObject(queues.back(), made[0], mapped, 0, nullptr, nullptr))) {
        }
        for (const cl_mem each : made)
            if (each)
                answers.note(clReleaseMemObject(each));
    });
}

// The free memory is enough but scattered, so that replicas move together.
TEST_F(OversubscriptionFaults, Compaction) {
    const auto bytes_of = [](size_t i) { return size_t{i == 4 ? 512u : 256u} << 10; };
    sweep([&](Answers& answers) {
        std::array<cl_mem, 5> made{};
        for (size_t i = 0; i < made.size(); ++i) {
            if (i == 4)
                for (const size_t hole : {0, 2})
                    if (made[hole] && answers.note(clReleaseMemObject(made[hole])))
                        made[hole] = nullptr;
            cl_int error = CL_SUCCESS;
            const cl_uint pattern = 7;
            made[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes_of(i), nullptr, &error);
            if (answers.note(error))
                answers.note(clEnqueueFillBuffer(queues.back(), made[i], &pattern, sizeof pattern, 0, bytes_of(i), 0,
                                                 nullptr, nullptr));
            answers.note(clFinish(queues.back()));
        }
        for (const cl_mem each : made)
            if (each)
                answers.note(clReleaseMemObject(each));
    });
}

}  // namespace
}  // namespace polder::test
