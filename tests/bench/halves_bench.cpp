// One buffer that all devices of a context share by sub-buffers: each pair of devices exchanges a part of its bytes, in both directions and
// over all links at once.
//
// For POCL_DEVICES="cpu cuda cuda", or any devices. Each part is filled by the device that has it, outside of the measured time. Then all parts
// move to their other device at once. Prints the time of the rounds in groups, because host memory that is copied again and again may
// get faster (POLDER_ALLOC_CONF=pinned:...).
// Arguments: the buffer's size in MiB (384), the number of rounds (60).
#include "opencl.h"

#include <algorithm>
#include <vector>

namespace {

using polder::bench::check;
using polder::bench::Clock;

struct Part {
    size_t devices[2];  // it goes back and forth between these
    cl_mem buffer;
    cl_uint value = 0;  // of all its words
};

class Exchange {
public:
    explicit Exchange(size_t megabytes) {
        cl_platform_id platform = nullptr;
        check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
        cl_uint count = 0;
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count), "clGetDeviceIDs");
        devices_.resize(count);
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices_.data(), nullptr), "clGetDeviceIDs");
        if (count < 2)
            check(CL_DEVICE_NOT_FOUND, "two devices are needed");
        cl_int error = CL_SUCCESS;
        context_ = clCreateContext(nullptr, count, devices_.data(), nullptr, nullptr, &error);
        check(error, "clCreateContext");
        for (const cl_device_id device : devices_) {
            // One for each direction: moves of one queue would follow each other.
            for (int i = 0; i < 2; ++i)
                queues_.push_back(clCreateCommandQueueWithProperties(context_, device, nullptr, &error));
            check(error, "clCreateCommandQueueWithProperties");
        }
        const size_t parts = count * (count - 1);
        part_bytes_ = (megabytes << 20) / parts / 4096 * 4096;
        whole_ = clCreateBuffer(context_, CL_MEM_READ_WRITE, part_bytes_ * parts, nullptr, &error);
        check(error, "clCreateBuffer");
        for (size_t i = 0; i < count; ++i)
            for (size_t j = 0; j < count; ++j)
                if (i != j) {
                    const cl_buffer_region region{parts_.size() * part_bytes_, part_bytes_};
                    const cl_mem part = clCreateSubBuffer(whole_, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
                    check(error, "clCreateSubBuffer");
                    parts_.push_back({{i, j}, part});
                }
    }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    ~Exchange() {
        for (const Part& part : parts_)
            clReleaseMemObject(part.buffer);
        clReleaseMemObject(whole_);
        for (const cl_command_queue queue : queues_)
            clReleaseCommandQueue(queue);
        clReleaseContext(context_);
    }

    [[nodiscard]] size_t bytes() const { return part_bytes_ * parts_.size(); }
    // Seconds.
    double round() {
        for (Part& part : parts_) {
            ++part.value;
            check(clEnqueueFillBuffer(queue(part, 0), part.buffer, &part.value, sizeof part.value, 0, part_bytes_, 0,
                                      nullptr, nullptr),
                  "clEnqueueFillBuffer");
        }
        finish();
        const auto begin = Clock::now();
        for (Part& part : parts_) {
            std::swap(part.devices[0], part.devices[1]);
            check(clEnqueueMigrateMemObjects(queue(part, 0), 1, &part.buffer, 0, 0, nullptr, nullptr),
                  "clEnqueueMigrateMemObjects");
        }
        finish();
        return polder::bench::microseconds_since(begin) / 1e6;
    }
    // Checks that every device sees the written bytes.
    void verify() const {
        std::vector<cl_uint> words(part_bytes_ / sizeof(cl_uint));
        for (const Part& part : parts_) {
            check(clEnqueueReadBuffer(queue(part, 0), part.buffer, CL_TRUE, 0, part_bytes_, words.data(), 0, nullptr,
                                      nullptr),
                  "clEnqueueReadBuffer");
            if (std::ranges::any_of(words, [&](cl_uint word) { return word != part.value; }))
                check(-9999, "a part has other bytes than were written");
        }
    }

private:
    // The queue of the device that has the part (0), or gets it next (1).
    [[nodiscard]] cl_command_queue queue(const Part& part, size_t which) const {
        const size_t device = part.devices[which];
        return queues_[2 * device + (part.devices[1 - which] > device ? 1 : 0)];
    }
    void finish() const {
        for (const cl_command_queue queue : queues_)
            check(clFlush(queue), "clFlush");
        for (const cl_command_queue queue : queues_)
            check(clFinish(queue), "clFinish");
    }

    std::vector<cl_device_id> devices_;
    cl_context context_ = nullptr;
    std::vector<cl_command_queue> queues_;
    std::vector<Part> parts_;
    cl_mem whole_ = nullptr;
    size_t part_bytes_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
    const size_t megabytes = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 384;
    const size_t rounds = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 60;
    Exchange exchange(megabytes);
    constexpr size_t group = 10;
    std::printf("%zu MiB in all, moved once a round\n", exchange.bytes() >> 20);
    for (size_t done = 0; done < rounds; done += group) {
        std::vector<double> seconds;
        for (size_t i = 0; i < std::min(group, rounds - done); ++i)
            seconds.push_back(exchange.round());
        std::ranges::sort(seconds);
        const auto rate = [&](double time) { return static_cast<double>(exchange.bytes()) / time / 1e9; };
        std::printf("rounds %zu to %zu: median %.2f ms, %.1f GB/s; best %.2f ms, %.1f GB/s\n", done + 1,
                    done + seconds.size(), seconds[seconds.size() / 2] * 1e3, rate(seconds[seconds.size() / 2]),
                    seconds.front() * 1e3, rate(seconds.front()));
    }
    exchange.verify();
    std::puts("the bytes are right");
}
