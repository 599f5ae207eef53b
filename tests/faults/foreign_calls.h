// ForeignCalls: the calls of the tests' own OpenCL implementation (tests/driver/fake_icd), when POCL_DEVICES names a proxy of it. Each of
// them can be made to fail. Its kernels are the functions of this file, by their names.
#pragma once

#include <CL/cl.h>
#include <array>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <fake_icd.h>
#include <polder/image_abi.h>
#include <polder/kernel_abi.h>

namespace polder::test {

class ForeignCalls {
public:
    // Once the platform's devices are there.
    ForeignCalls() : library_(dlopen(POLDER_FAKE_ICD, RTLD_NOW | RTLD_NOLOAD)) {
        if (!library_)
            return;
        fail_ = find<fake_icd::FailCall>("fake_icd_fail_call");
        failed_ = find<fake_icd::FailedCall>("fake_icd_failed_call");
        live_ = find<fake_icd::Live>("fake_icd_live");
        live_queues_ = find<fake_icd::Live>("fake_icd_live_queues");
        using Kind = driver::KernelParameter::Kind;
        const fake_icd::Kernel add{run_add, 0, 0, {{Kind::global_pointer, 0, 8}, {Kind::value, 8, 4}}};
        const fake_icd::Kernel sum{
            run_sum, 0, 0, {{Kind::global_pointer, 0, 8}, {Kind::global_pointer, 8, 8}, {Kind::global_pointer, 16, 8}}};
        const auto register_kernel = find<fake_icd::RegisterKernel>("fake_icd_register_kernel");
        register_kernel("add", &add);
        register_kernel("sum", &sum);
        using driver::ImageType;
        using driver::ImageUse;
        constexpr uint32_t next = sizeof(ImageDescriptor);
        const fake_icd::Kernel invert{
            run_invert, 0, 0, {{Kind::image, 0, next, ImageType::image_2d, ImageUse::read_write}}};
        const fake_icd::Kernel enlarge{run_enlarge,
                                       0,
                                       0,
                                       {{Kind::image, 0, next, ImageType::image_2d, ImageUse::read},
                                        {Kind::sampler, 2 * next, 8},
                                        {Kind::image, next, next, ImageType::image_2d, ImageUse::write}}};
        register_kernel("invert", &invert);
        register_kernel("enlarge", &enlarge);
    }
    ForeignCalls(const ForeignCalls&) = delete;
    ForeignCalls& operator=(const ForeignCalls&) = delete;

    [[nodiscard]] bool are_there() const { return library_ != nullptr; }
    // Call number `n` from now on, of all threads; -1: none.
    void fail(int64_t n, cl_int code) const { fail_(n, code); }
    // Its name; null: it has not been made.
    [[nodiscard]] const char* failed() const { return failed_(); }
    // But for queues, which Polder keeps for the next ones. 0 when there is no such implementation.
    [[nodiscard]] int64_t live_objects() const { return library_ ? live_() - live_queues_() : 0; }

private:
    template <class Function>
    [[nodiscard]] Function find(const char* name) const {
        return reinterpret_cast<Function>(dlsym(library_, name));
    }
    template <class Body>
    static void for_each_item(const LaunchContext& launch, const uint64_t* group, Body&& body) {
        for (uint64_t i = 0; i < launch.local_size[0]; ++i)
            body(group[0] * launch.local_size[0] + i);
    }
    // kernel void add(global int* data, int value)
    static void run_add(const std::byte* arguments, const LaunchContext* launch, const uint64_t* group, std::byte*,
                        std::byte*) {
        cl_int* data = nullptr;
        cl_int value = 0;
        std::memcpy(&data, arguments, sizeof data);
        std::memcpy(&value, arguments + 8, sizeof value);
        for_each_item(*launch, group, [&](uint64_t item) { data[item] += value; });
    }
    // kernel void sum(global int* to, global const int* a, global const int* b)
    static void run_sum(const std::byte* arguments, const LaunchContext* launch, const uint64_t* group, std::byte*,
                        std::byte*) {
        std::array<cl_int*, 3> data{};
        std::memcpy(data.data(), arguments, sizeof data);
        for_each_item(*launch, group, [&](uint64_t item) { data[0][item] = data[1][item] + data[2][item]; });
    }
    // Calls body(element, x, y) for the elements of a 2D image that a work-group has.
    template <class Body>
    static void for_each_element(const ImageDescriptor& image, const LaunchContext& launch, const uint64_t* group,
                                 Body&& body) {
        for (uint64_t j = 0; j < launch.local_size[1]; ++j)
            for (uint64_t i = 0; i < launch.local_size[0]; ++i) {
                const uint64_t x = group[0] * launch.local_size[0] + i;
                const uint64_t y = group[1] * launch.local_size[1] + j;
                if (x < static_cast<uint64_t>(image.width) && y < static_cast<uint64_t>(image.height))
                    body(element_at(image, x, y), x, y);
            }
    }
    static uint32_t& element_at(const ImageDescriptor& image, uint64_t x, uint64_t y) {
        return *reinterpret_cast<uint32_t*>(image.data + y * image.row_pitch + x * 4);
    }
    // kernel void invert(read_write image2d_t image)
    static void run_invert(const std::byte* arguments, const LaunchContext* launch, const uint64_t* group, std::byte*,
                           std::byte*) {
        ImageDescriptor image;
        std::memcpy(&image, arguments, sizeof image);
        for_each_element(image, *launch, group, [](uint32_t& element, uint64_t, uint64_t) { element = ~element; });
    }
    // kernel void enlarge(read_only image2d_t from, sampler_t sampler, write_only image2d_t to)
    static void run_enlarge(const std::byte* arguments, const LaunchContext* launch, const uint64_t* group, std::byte*,
                            std::byte*) {
        std::array<ImageDescriptor, 2> images{};
        std::memcpy(images.data(), arguments, sizeof images);
        for_each_element(images[1], *launch, group, [&](uint32_t& element, uint64_t x, uint64_t y) {
            element = element_at(images[0], x / 2, y / 2);
        });
    }

    void* const library_;
    fake_icd::FailCall fail_ = nullptr;
    fake_icd::FailedCall failed_ = nullptr;
    fake_icd::Live live_ = nullptr;
    fake_icd::Live live_queues_ = nullptr;
};

}  // namespace polder::test
