// Images on a device of the tests' own OpenCL implementation (FAKE_ICD=images) in one context with ours: POCL_DEVICES="cpu proxy". Its
// kernels are functions of this file; its images have rows of their own, which only copies make equal to Polder's.
#include "support/images.h"

#include <CL/cl_ext.h>
#include <fake_icd.h>
#include <find.h>
#include <map>
#include <polder/image_abi.h>
#include <polder/kernel_abi.h>

namespace polder::test {
namespace {

using Kind = driver::KernelParameter::Kind;
constexpr uint32_t next = sizeof(ImageDescriptor);

ImageDescriptor image_at(const std::byte* arguments, size_t offset) {
    ImageDescriptor image;
    std::memcpy(&image, arguments + offset, sizeof image);
    return image;
}

// Calls f(words of a row, width) for each row.
template <class F>
void for_each_row(const ImageDescriptor& image, F&& f) {
    for (int32_t z = 0; z < image.depth; ++z)
        for (int32_t y = 0; y < image.height; ++y)
            f(reinterpret_cast<uint32_t*>(image.data + static_cast<uint64_t>(z) * image.slice_pitch +
                                          static_cast<uint64_t>(y) * image.row_pitch),
              image.width * static_cast<int32_t>(image.element_bytes / 4));
}

// Every word of a second image, and the sampler's bits, are added to those of a first one. One work-item.
void run_add_image(const std::byte* arguments, const LaunchContext*, const uint64_t*, std::byte*, std::byte*) {
    std::vector<uint32_t> words;
    for_each_row(image_at(arguments, next),
                 [&](const uint32_t* row, int32_t width) { words.insert(words.end(), row, row + width); });
    uint64_t bits = 0;
    std::memcpy(&bits, arguments + size_t{2} * next, sizeof bits);
    size_t at = 0;
    for_each_row(image_at(arguments, 0), [&](uint32_t* row, int32_t width) {
        for (int32_t x = 0; x < width; ++x)
            row[x] += words[at++] + static_cast<uint32_t>(bits);
    });
}
// Only the first element of each row.
void run_mark(const std::byte* arguments, const LaunchContext*, const uint64_t*, std::byte*, std::byte*) {
    for_each_row(image_at(arguments, 0), [](uint32_t* row, int32_t) { row[0] = 99; });
}
// The first element of each row of one image, and the last one of the other.
void run_mark_both(const std::byte* arguments, const LaunchContext*, const uint64_t*, std::byte*, std::byte*) {
    for_each_row(image_at(arguments, 0), [](uint32_t* row, int32_t) { row[0] = 99; });
    for_each_row(image_at(arguments, next), [](uint32_t* row, int32_t width) { row[width - 1] = 77; });
}

constexpr const char* source = R"(
    kernel void add_2d(read_write image2d_t to, read_only image2d_t from, sampler_t how) {
        int2 at = (int2)(get_global_id(0), 0);
        write_imageui(to, at, read_imageui(to, at) + read_imageui(from, how, at));
    }
    kernel void mark_1d(write_only image1d_t to) { write_imageui(to, 0, 99); }
    kernel void mark_1d_array(write_only image1d_array_t to) { write_imageui(to, (int2)0, 99); }
    kernel void mark_2d(write_only image2d_t to) { write_imageui(to, (int2)0, 99); }
    kernel void mark_2d_array(write_only image2d_array_t to) { write_imageui(to, (int4)0, 99); }
    kernel void mark_both(write_only image2d_t to, write_only image2d_t other) {
        write_imageui(to, (int2)0, 99);
        write_imageui(other, (int2)(get_image_width(other) - 1, 0), 77);
    }
    kernel void mark_and_change(write_only image2d_t to, read_write image2d_t other) {
        write_imageui(to, (int2)0, 99);
        write_imageui(other, (int2)(get_image_width(other) - 1, 0), 77);
    }
    kernel void mark_buffer(write_only image1d_buffer_t to) { write_imageui(to, 0, 99); }
)";

class ProxyImages : public ImageTest {
protected:
    void SetUp() override {
        using driver::ImageType;
        using driver::ImageUse;
        const auto register_kernel = fake_icd::find<fake_icd::RegisterKernel>("fake_icd_register_kernel");
        const fake_icd::Kernel add{run_add_image,
                                   0,
                                   0,
                                   {{Kind::image, 0, next, ImageType::image_2d, ImageUse::read_write},
                                    {Kind::image, next, next, ImageType::image_2d, ImageUse::read},
                                    {Kind::sampler, 2 * next, 8}}};
        register_kernel("add_2d", &add);
        for (const auto& [name, type] : marks) {
            const fake_icd::Kernel mark{run_mark, 0, 0, {{Kind::image, 0, next, type, ImageUse::write}}};
            register_kernel(name, &mark);
        }
        for (const auto& [name, use] :
             {std::pair{"mark_both", ImageUse::write}, {"mark_and_change", ImageUse::read_write}}) {
            const fake_icd::Kernel mark{run_mark_both,
                                        0,
                                        0,
                                        {{Kind::image, 0, next, ImageType::image_2d, ImageUse::write},
                                         {Kind::image, next, next, ImageType::image_2d, use}}};
            register_kernel(name, &mark);
        }
        ContextTest::SetUp();
        ASSERT_EQ(devices.size(), 2u) << "POCL_DEVICES must be \"cpu proxy\"";
        foreign = make_queue(devices[1]);
        program = build(source, "-cl-std=CL3.0");
    }
    void TearDown() override {
        for (const char* call : failing)
            fake_icd::find<fake_icd::Fail>("fake_icd_fail")(call, CL_SUCCESS, 0);
    }
    void fail_call(const char* call, cl_int code, int good = 0) {
        failing.push_back(call);
        fake_icd::find<fake_icd::Fail>("fake_icd_fail")(call, code, good);
    }
    static uint64_t calls(const char* call) { return fake_icd::find<fake_icd::Calls>("fake_icd_calls")(call); }

    // A launch with one work-item; the state of its event.
    cl_int launch(cl_kernel kernel) {
        const size_t one = 1;
        OwnedEvent done;
        const cl_int error = clEnqueueNDRangeKernel(foreign, kernel, 1, nullptr, &one, &one, 0, nullptr, done.out());
        if (error != CL_SUCCESS)
            return error;
        static_cast<void>(clWaitForEvents(1, done.in()));
        cl_int state = CL_QUEUED;
        EXPECT_EQ(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr), CL_SUCCESS);
        return state;
    }
    cl_int add(cl_mem to, cl_mem from, cl_sampler how) {
        const OwnedKernel kernel = make_kernel(program, "add_2d");
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof to, &to), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof from, &from), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof how, &how), CL_SUCCESS);
        return launch(kernel);
    }
    cl_int mark(const char* name, cl_mem image) {
        const OwnedKernel kernel = make_kernel(program, name);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof image, &image), CL_SUCCESS);
        return launch(kernel);
    }
    [[nodiscard]] OwnedMem image_2d(std::vector<uint32_t>& words) {
        return make_image({CL_RGBA, CL_UNSIGNED_INT8}, describe(CL_MEM_OBJECT_IMAGE2D, {width, height, 1}),
                          CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, words.data());
    }
    std::vector<uint32_t> words_of(cl_mem image, const Triple& region = {width, height, 1}) {
        std::vector<uint32_t> words(region[0] * region[1] * region[2]);
        const Triple origin{};
        // By the processor's queue, so that the bytes move to where it computes.
        EXPECT_EQ(clEnqueueReadImage(queue, image, CL_TRUE, origin.data(), region.data(), 0, 0, words.data(), 0,
                                     nullptr, nullptr),
                  CL_SUCCESS);
        return words;
    }
    OwnedSampler make_sampler(cl_bool normalized = CL_FALSE, cl_addressing_mode mode = CL_ADDRESS_NONE,
                              cl_filter_mode filter = CL_FILTER_NEAREST) {
        cl_int error = CL_INVALID_VALUE;
        const cl_sampler made = clCreateSampler(context, normalized, mode, filter, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }

    static constexpr std::pair<const char*, driver::ImageType> marks[] = {
        {"mark_1d", driver::ImageType::image_1d},
        {"mark_1d_array", driver::ImageType::array_1d},
        {"mark_2d", driver::ImageType::image_2d},
        {"mark_2d_array", driver::ImageType::array_2d},
        {"mark_buffer", driver::ImageType::buffer_1d}};
    static constexpr size_t width = 6, height = 5;
    OwnedQueue foreign;
    OwnedProgram program;
    std::vector<const char*> failing;
};

TEST_F(ProxyImages, OnlyWhatBothImplementationsHaveIsReported) {
    const auto number = [&](cl_device_info name, auto value) {
        EXPECT_EQ(clGetDeviceInfo(devices[1], name, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    };
    EXPECT_EQ(number(CL_DEVICE_IMAGE_SUPPORT, cl_bool{}), cl_bool{CL_TRUE});
    EXPECT_EQ(number(CL_DEVICE_MAX_READ_IMAGE_ARGS, cl_uint{}), 128u) << "ours";
    EXPECT_EQ(number(CL_DEVICE_MAX_WRITE_IMAGE_ARGS, cl_uint{}), 8u) << "theirs";
    EXPECT_EQ(number(CL_DEVICE_IMAGE2D_MAX_WIDTH, size_t{}), 4096u) << "theirs";
    EXPECT_EQ(number(CL_DEVICE_IMAGE3D_MAX_DEPTH, size_t{}), 2048u) << "ours";
    EXPECT_EQ(number(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, size_t{}), 65536u);
    EXPECT_EQ(number(CL_DEVICE_MAX_SAMPLERS, cl_uint{}), 16u);
    cl_int error = CL_INVALID_VALUE;
    const OwnedContext alone = clCreateContext(nullptr, 1, &devices[1], nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const auto formats = [](cl_context of, cl_mem_flags flags, cl_mem_object_type type) {
        cl_uint count = 0;
        EXPECT_EQ(clGetSupportedImageFormats(of, flags, type, 0, nullptr, &count), CL_SUCCESS);
        return count;
    };
    EXPECT_EQ(formats(alone, CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D), 3u);
    EXPECT_EQ(formats(alone, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D), 2u) << "one of them is only read";
    EXPECT_EQ(formats(alone, CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE1D_ARRAY), 2u);
    EXPECT_EQ(formats(alone, CL_MEM_KERNEL_READ_AND_WRITE, CL_MEM_OBJECT_IMAGE3D), 2u);
    EXPECT_GT(formats(context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D), 40u) << "the processor has more";
    // Images that no device of a context can use.
    const auto creation = [&](const cl_image_format& format, size_t extent) {
        const cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {extent, 4, 1});
        const OwnedMem made = clCreateImage(alone, CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
        return error;
    };
    EXPECT_EQ(creation({CL_RGBA, CL_UNSIGNED_INT8}, 4096), CL_SUCCESS);
    EXPECT_EQ(creation({CL_RGBA, CL_UNSIGNED_INT8}, 4097), CL_INVALID_IMAGE_SIZE);
    EXPECT_EQ(creation({CL_RGBA, CL_UNORM_INT16}, 16), CL_IMAGE_FORMAT_NOT_SUPPORTED);
    EXPECT_EQ(creation({CL_R, CL_FLOAT}, 16), CL_IMAGE_FORMAT_NOT_SUPPORTED) << "it could only be read";
}

TEST_F(ProxyImages, RowsAreCopiedInForEveryLaunchAndBackForWhatItWrites) {
    std::vector<uint32_t> first(width * height, 1000), second(width * height);
    for (uint32_t i = 0; i < second.size(); ++i)
        second[i] = i;
    const OwnedMem to = image_2d(first), from = image_2d(second);
    const OwnedSampler how = make_sampler(CL_TRUE, CL_ADDRESS_REPEAT, CL_FILTER_LINEAR);
    const uint64_t in = calls("clEnqueueCopyBufferToImage");
    const uint64_t out = calls("clEnqueueCopyImageToBuffer");
    const uint64_t made = calls("clCreateImage");
    constexpr uint32_t bits = 0x1 | 0x6 | 0x20;
    for (uint32_t round = 1; round <= 3; ++round) {
        ASSERT_EQ(add(to, from, how), CL_COMPLETE);
        for (size_t i = 0; i < first.size(); ++i)
            first[i] += second[i] + bits;
        ASSERT_EQ(words_of(to), first) << round;
        // The processor changes an element in between.
        first[7] = 5 * round;
        write_image(to, {1, 1, 0}, {1, 1, 1}, &first[7]);
    }
    EXPECT_EQ(words_of(from), second);
    EXPECT_EQ(calls("clEnqueueCopyBufferToImage") - in, 6u);
    EXPECT_EQ(calls("clEnqueueCopyImageToBuffer") - out, 3u) << "what is only read is not copied back";
    EXPECT_EQ(calls("clCreateImage") - made, 2u) << "later launches use the same images";
}

// Each copy back would undo what the kernel wrote through the other parameter.
TEST_F(ProxyImages, AnImageThatAKernelWritesThroughTwoParametersIsCopiedOnce) {
    for (const char* name : {"mark_both", "mark_and_change"}) {
        std::vector<uint32_t> words(width * height, 3);
        const OwnedMem image = image_2d(words);
        const OwnedKernel kernel = make_kernel(program, name);
        for (cl_uint i = 0; i < 2; ++i)
            EXPECT_EQ(clSetKernelArg(kernel, i, sizeof(cl_mem), image.in()), CL_SUCCESS);
        const uint64_t out = calls("clEnqueueCopyImageToBuffer");
        ASSERT_EQ(launch(kernel), CL_COMPLETE);
        for (size_t y = 0; y < height; ++y) {
            words[y * width] = 99;
            words[(y + 1) * width - 1] = 77;
        }
        EXPECT_EQ(words_of(image), words) << name;
        EXPECT_EQ(calls("clEnqueueCopyImageToBuffer") - out, 1u) << name;
    }
}

// A write-only image keeps the elements that the kernel does not write.
TEST_F(ProxyImages, ImagesOfEveryTypeKeepWhatIsNotWritten) {
    struct Case {
        const char* kernel;
        cl_mem_object_type type;
        Triple extent;
    };
    for (const Case& each : {Case{"mark_1d", CL_MEM_OBJECT_IMAGE1D, {7, 1, 1}},
                             Case{"mark_1d_array", CL_MEM_OBJECT_IMAGE1D_ARRAY, {7, 3, 1}},
                             Case{"mark_2d", CL_MEM_OBJECT_IMAGE2D, {7, 3, 1}},
                             Case{"mark_2d_array", CL_MEM_OBJECT_IMAGE2D_ARRAY, {7, 3, 4}}}) {
        std::vector<uint32_t> words(each.extent[0] * each.extent[1] * each.extent[2], 3);
        const OwnedMem image = make_image({CL_RGBA, CL_UNSIGNED_INT8}, describe(each.type, each.extent),
                                          CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, words.data());
        ASSERT_EQ(mark(each.kernel, image), CL_COMPLETE) << each.kernel;
        for (size_t i = 0; i < words.size(); i += each.extent[0])
            words[i] = 99;
        EXPECT_EQ(words_of(image, each.extent), words) << each.kernel;
    }
}

TEST_F(ProxyImages, ABufferImageShowsTheBufferItself) {
    std::vector<uint32_t> words(64, 3);
    const OwnedMem buffer = make_buffer(words.size() * 4);
    write(buffer, words);
    cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE1D_BUFFER, {words.size(), 1, 1});
    description.mem_object = buffer;
    const OwnedMem image = make_image({CL_RGBA, CL_UNSIGNED_INT8}, description);
    const uint64_t in = calls("clEnqueueCopyBufferToImage");
    for (int i = 0; i < 2; ++i)
        ASSERT_EQ(mark("mark_buffer", image), CL_COMPLETE);
    words[0] = 99;
    EXPECT_EQ(read<uint32_t>(buffer, words.size()), words);
    EXPECT_EQ(calls("clEnqueueCopyBufferToImage"), in);
}

// PoCL 3.1 makes no image of a part of a buffer. Not the first in the region, so that it is a part.
TEST_F(ProxyImages, WhereABufferCannotBeShownItsBytesAreCopied) {
    std::vector<uint32_t> words(61, 3);
    const OwnedMem before = make_buffer(4096);
    write(before, words);
    const OwnedMem buffer = make_buffer(words.size() * 4);
    write(buffer, words);
    cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE1D_BUFFER, {words.size(), 1, 1});
    description.mem_object = buffer;
    const OwnedMem image = make_image({CL_RGBA, CL_UNSIGNED_INT8}, description);
    // On a queue of its own, which remembers the refusal.
    foreign = make_queue(devices[1]);
    for (int i = 0; i < 2; ++i) {
        const uint64_t made = calls("clCreateImage");
        fail_call("clCreateImage", i == 0 ? CL_INVALID_MEM_OBJECT : CL_SUCCESS);
        const cl_int state = mark("mark_buffer", image);
        EXPECT_EQ(state, i == 0 ? CL_OUT_OF_RESOURCES : CL_COMPLETE) << "also the pool's image was refused at first";
        EXPECT_LE(calls("clCreateImage") - made, 2u);
    }
    words[0] = 99;
    EXPECT_EQ(read<uint32_t>(buffer, words.size()), words);
}

// The rows of a 2D image from a buffer lie apart: OpenCL has no command that copies them at once.
TEST_F(ProxyImages, RowsThatLieApartAreCopiedOneByOne) {
    constexpr size_t pitch = 11;  // in elements
    std::vector<uint32_t> words(pitch * height, 3);
    const OwnedMem buffer = make_buffer(words.size() * 4);
    write(buffer, words);
    cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {width, height, 1});
    description.mem_object = buffer;
    description.image_row_pitch = pitch * 4;
    const OwnedMem image = make_image({CL_RGBA, CL_UNSIGNED_INT8}, description);
    const uint64_t in = calls("clEnqueueCopyBufferToImage");
    ASSERT_EQ(mark("mark_2d", image), CL_COMPLETE);
    for (size_t y = 0; y < height; ++y)
        words[y * pitch] = 99;
    EXPECT_EQ(read<uint32_t>(buffer, words.size()), words);
    EXPECT_EQ(calls("clEnqueueCopyBufferToImage") - in, height);
}

// A query of the work-group size that a launch would have has its errors.
TEST_F(ProxyImages, WhatTheDeviceCannotUseIsRefusedByTheLaunch) {
    const auto suggest = reinterpret_cast<clGetKernelSuggestedLocalWorkSizeKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clGetKernelSuggestedLocalWorkSizeKHR"));
    const auto refused = [&](const cl_image_format& format, const Triple& extent) {
        const OwnedMem image = make_image(format, describe(CL_MEM_OBJECT_IMAGE2D, extent));
        const OwnedKernel kernel = make_kernel(program, "mark_2d");
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), image.in()), CL_SUCCESS);
        const size_t size = 16;
        size_t local = 0;
        const cl_int suggestion = suggest(foreign, kernel, 1, nullptr, &size, &local);
        EXPECT_EQ(suggest(queue, kernel, 1, nullptr, &size, &local), CL_SUCCESS) << "on the processor";
        const cl_int state = mark("mark_2d", image);
        EXPECT_EQ(suggestion, state == CL_COMPLETE ? CL_SUCCESS : state);
        EXPECT_EQ(clEnqueueTask(foreign, kernel, 0, nullptr, nullptr), suggestion);
        EXPECT_EQ(clFinish(foreign), CL_SUCCESS);
        return state;
    };
    EXPECT_EQ(refused({CL_RGBA, CL_UNORM_INT16}, {4, 4, 1}), CL_IMAGE_FORMAT_NOT_SUPPORTED);
    EXPECT_EQ(refused({CL_R, CL_FLOAT}, {4, 4, 1}), CL_IMAGE_FORMAT_NOT_SUPPORTED) << "it would be written";
    EXPECT_EQ(refused({CL_RGBA, CL_UNSIGNED_INT8}, {5000, 1, 1}), CL_INVALID_IMAGE_SIZE);
    EXPECT_EQ(refused({CL_RGBA, CL_UNSIGNED_INT8}, {4, 4, 1}), CL_COMPLETE);
}

// The device of the queue decides, although another device of the context supports the image.
TEST_F(ProxyImages, WhatTheDeviceCannotUseIsRefusedByEveryCommand) {
    const OwnedMem buffer = make_buffer(65536);
    const Triple origin{}, other{2, 0, 0}, region{1, 1, 1};
    std::vector<std::byte> bytes(64);
    // The error codes of all commands on an image, each named once.
    const auto codes = [&](cl_command_queue on, const OwnedMem& image) {
        std::map<cl_int, std::string> found;
        const auto note = [&](const char* name, cl_int code) { found[code].append(name).append(" "); };
        const float color[4]{};
        size_t pitch = 0;
        cl_int error = CL_INVALID_VALUE;
        note("read", clEnqueueReadImage(on, image, CL_TRUE, origin.data(), region.data(), 0, 0, bytes.data(), 0,
                                        nullptr, nullptr));
        note("write", clEnqueueWriteImage(on, image, CL_TRUE, origin.data(), region.data(), 0, 0, bytes.data(), 0,
                                          nullptr, nullptr));
        note("copy",
             clEnqueueCopyImage(on, image, image, origin.data(), other.data(), region.data(), 0, nullptr, nullptr));
        note("to", clEnqueueCopyImageToBuffer(on, image, buffer, origin.data(), region.data(), 0, 0, nullptr, nullptr));
        note("from",
             clEnqueueCopyBufferToImage(on, buffer, image, 0, origin.data(), region.data(), 0, nullptr, nullptr));
        note("fill", clEnqueueFillImage(on, image, color, origin.data(), region.data(), 0, nullptr, nullptr));
        void* const mapped = clEnqueueMapImage(on, image, CL_TRUE, CL_MAP_READ, origin.data(), region.data(), &pitch,
                                               nullptr, 0, nullptr, nullptr, &error);
        note("map", error);
        EXPECT_EQ(mapped != nullptr, error == CL_SUCCESS);
        if (mapped) {
            EXPECT_EQ(clEnqueueUnmapMemObject(on, image, mapped, 0, nullptr, nullptr), CL_SUCCESS);
        }
        EXPECT_EQ(clFinish(on), CL_SUCCESS);
        return found;
    };
    const auto all = [](cl_int code) {
        return std::map<cl_int, std::string>{{code, "read write copy to from fill map "}};
    };
    const auto check = [&](const cl_image_format& format, const Triple& extent, cl_int expected) {
        const OwnedMem image = make_image(format, describe(CL_MEM_OBJECT_IMAGE2D, extent));
        EXPECT_EQ(codes(foreign, image), all(expected));
        EXPECT_EQ(codes(queue, image), all(CL_SUCCESS)) << "on the processor";
    };
    check({CL_RGBA, CL_UNORM_INT16}, {4, 4, 1}, CL_IMAGE_FORMAT_NOT_SUPPORTED);
    check({CL_RGBA, CL_UNSIGNED_INT8}, {5000, 1, 1}, CL_INVALID_IMAGE_SIZE);
    check({CL_RGBA, CL_UNSIGNED_INT8}, {4096, 1, 1}, CL_SUCCESS);
    check({CL_R, CL_FLOAT}, {4, 4, 1}, CL_SUCCESS);  // kernels there can only read it

    // A copy is refused if the device cannot use the image that is written, too.
    const OwnedMem small = make_image({CL_RGBA, CL_UNSIGNED_INT8}, describe(CL_MEM_OBJECT_IMAGE2D, {8, 1, 1}));
    const OwnedMem large = make_image({CL_RGBA, CL_UNSIGNED_INT8}, describe(CL_MEM_OBJECT_IMAGE2D, {5000, 1, 1}));
    EXPECT_EQ(
        clEnqueueCopyImage(foreign, small, large, origin.data(), origin.data(), region.data(), 0, nullptr, nullptr),
        CL_INVALID_IMAGE_SIZE);
    // The specification has no such condition for migrations.
    EXPECT_EQ(clEnqueueMigrateMemObjects(foreign, 1, large.in(), 0, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clFinish(foreign), CL_SUCCESS);
}

// The device of the queue decides: it wants sub-buffers at multiples of 256, the processor at multiples of 128.
TEST_F(ProxyImages, CopiesOfMisalignedSubBuffersAreRefused) {
    const OwnedMem image = make_image({CL_RGBA, CL_UNSIGNED_INT8}, describe(CL_MEM_OBJECT_IMAGE2D, {4, 1, 1}));
    const OwnedMem whole = make_buffer(8192);
    const Triple origin{}, region{4, 1, 1};
    const auto check = [&](cl_command_queue on, size_t at, cl_int expected) {
        const OwnedMem part = sub_buffer(whole, at, 256);
        EXPECT_EQ(clEnqueueCopyBufferToImage(on, part, image, 0, origin.data(), region.data(), 0, nullptr, nullptr),
                  expected);
        EXPECT_EQ(clEnqueueCopyImageToBuffer(on, image, part, origin.data(), region.data(), 0, 0, nullptr, nullptr),
                  expected);
        EXPECT_EQ(clFinish(on), CL_SUCCESS);
    };
    check(foreign, 1024 + 128, CL_MISALIGNED_SUB_BUFFER_OFFSET);
    check(foreign, 1024, CL_SUCCESS);
    check(queue, 1024 + 128, CL_SUCCESS);
}

TEST_F(ProxyImages, ACallThatFailsFailsOneLaunch) {
    std::vector<uint32_t> first(width * height, 1), second(width * height, 2);
    const OwnedMem to = image_2d(first), from = image_2d(second);
    const OwnedSampler how = make_sampler();
    const OwnedSampler other = make_sampler(CL_FALSE, CL_ADDRESS_CLAMP);
    for (const char* call : {"clCreateImage", "clEnqueueCopyBufferToImage", "clEnqueueCopyImageToBuffer",
                             "clEnqueueNDRangeKernel", "clSetKernelArg"}) {
        // The second of such calls, where a launch makes several.
        for (const int good : {0, 1}) {
            const uint64_t before = calls(call);
            fail_call(call, CL_OUT_OF_RESOURCES, good);
            const cl_int state = add(to, from, how);
            fake_icd::find<fake_icd::Fail>("fake_icd_fail")(call, CL_SUCCESS, 0);
            // Images of earlier launches may be there.
            const bool has_failed = calls(call) - before > static_cast<uint64_t>(good);
            EXPECT_EQ(state, has_failed ? CL_OUT_OF_RESOURCES : CL_COMPLETE) << call << " after " << good;
            write_image(to, {}, {width, height, 1}, first.data());
        }
    }
    fail_call("clCreateSampler", CL_OUT_OF_RESOURCES);
    EXPECT_EQ(add(to, from, other), CL_OUT_OF_RESOURCES);
    fake_icd::find<fake_icd::Fail>("fake_icd_fail")("clCreateSampler", CL_SUCCESS, 0);
    // A kernel that fails when it is executed, between two copies that succeed.
    fail_call("execute", CL_OUT_OF_RESOURCES, 2);
    EXPECT_NE(add(to, from, how), CL_COMPLETE);
    fake_icd::find<fake_icd::Fail>("fake_icd_fail")("execute", CL_SUCCESS, 0);
    write_image(to, {}, {width, height, 1}, first.data());
    ASSERT_EQ(add(to, from, how), CL_COMPLETE);
    EXPECT_EQ(words_of(to), std::vector<uint32_t>(width * height, 1 + 2 + 0x10));
}

// The images that are kept for later launches are bounded: 64 MiB, and those of the newest launch.
TEST_F(ProxyImages, ImagesOfManyShapesAreNotAllKept) {
    const auto live = fake_icd::find<fake_icd::Live>("fake_icd_live");
    std::vector<int64_t> objects;
    for (size_t i = 0; i < 12; ++i) {
        const OwnedMem image = make_image({CL_RGBA, CL_UNSIGNED_INT8},
                                          describe(CL_MEM_OBJECT_IMAGE2D, {2048, 2048 - i, 1}), CL_MEM_READ_WRITE);
        ASSERT_EQ(mark("mark_2d", image), CL_COMPLETE) << i;
        ASSERT_EQ(clFinish(foreign), CL_SUCCESS);
        objects.push_back(live());
    }
    EXPECT_LE(objects.back() - objects[5], 1) << "6 x 16 MiB are not kept";
}

}  // namespace
}  // namespace polder::test
