// Images without memory: each allocation, reserve of pages and start of a thread of these flows fails in turn.
#include "../api/support/images.h"
#include "fault_sweep.h"

namespace polder::test {
namespace {

class ImageFaults : public Faults {
protected:
    static constexpr size_t width = 64, height = 16, image_bytes = width * height * 4;
    static constexpr std::array<size_t, 3> origin{0, 0, 0}, whole{width, height, 1}, part{20, 6, 1}, corner{20, 6, 0};

    void SetUp() override {
        Faults::SetUp();
        for (const cl_device_id device : devices) {
            cl_bool has_images = CL_FALSE;
            ASSERT_EQ(clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof has_images, &has_images, nullptr),
                      CL_SUCCESS);
            if (has_images == CL_FALSE)
                GTEST_SKIP() << "a device without images";
        }
        image_program_ = build(R"(
            kernel void invert(read_write image2d_t image) {
                int2 at = (int2)(get_global_id(0), get_global_id(1));
                write_imageui(image, at, 255 - read_imageui(image, at));
            }
            kernel void enlarge(read_only image2d_t from, sampler_t sampler, write_only image2d_t to) {
                int2 at = (int2)(get_global_id(0), get_global_id(1));
                write_imageui(to, at, read_imageui(from, sampler, convert_float2(at) / 2));
            }
        )",
                               "-cl-std=CL3.0");
        invert_ = make_kernel(image_program_, "invert");
        enlarge_ = make_kernel(image_program_, "enlarge");
        pixels_.resize(image_bytes);
        for (size_t i = 0; i < pixels_.size(); ++i)
            pixels_[i] = static_cast<uint8_t>(i * 7 + i / 256);
        found_.resize(image_bytes);
    }
    cl_mem make(Answers& answers, cl_mem_flags flags = CL_MEM_READ_WRITE, void* host = nullptr,
                cl_mem buffer = nullptr) {
        const cl_image_format format{CL_RGBA, CL_UNSIGNED_INT8};
        cl_image_desc description = describe(CL_MEM_OBJECT_IMAGE2D, {width, height, 1});
        description.buffer = buffer;
        cl_int error = CL_SUCCESS;
        const cl_mem made = clCreateImage(context, flags, &format, &description, host, &error);
        answers.note(error);
        return made;
    }
    // Whether the kernel has been executed: one that was enqueued may fail later, which its event reports.
    bool invert_on(Answers& answers, size_t device, cl_mem image) {
        cl_event done = nullptr;
        if (!answers.note(clSetKernelArg(invert_, 0, sizeof image, &image)) ||
            !answers.note(
                clEnqueueNDRangeKernel(queues[device], invert_, 2, nullptr, whole.data(), nullptr, 0, nullptr, &done)))
            return false;
        answers.note(clFinish(queues[device]));
        cl_int status = CL_QUEUED;
        answers.note(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
        answers.note(clReleaseEvent(done));
        return answers.note(status);
    }

    OwnedProgram image_program_;
    OwnedKernel invert_, enlarge_;
    std::vector<uint8_t> pixels_, found_;
};

// When every call has succeeded, the pixels are right.
TEST_F(ImageFaults, KernelsOnEveryDevice) {
    sweep([&](Answers& answers) {
        const cl_mem image = make(answers, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, pixels_.data());
        if (!image)
            return;
        bool all = true;
        for (size_t device = 0; device < devices.size(); ++device)
            all = invert_on(answers, device, image) && all;
        all = answers.note(clEnqueueReadImage(queues.back(), image, CL_TRUE, origin.data(), whole.data(), 0, 0,
                                              found_.data(), 0, nullptr, nullptr)) &&
              all;
        const uint8_t flips = devices.size() % 2 == 0 ? 0 : 255;
        for (size_t i = 0; all && i < image_bytes; ++i)
            all = found_[i] == (pixels_[i] ^ flips);
        EXPECT_TRUE(all || answers.count() != 0);
        answers.note(clReleaseMemObject(image));
    });
}

TEST_F(ImageFaults, SampledOnOneDeviceAndWrittenOnAnother) {
    sweep([&](Answers& answers) {
        cl_int error = CL_SUCCESS;
        const cl_sampler sampler =
            clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST, &error);
        if (!answers.note(error))
            return;
        const cl_mem from = make(answers), to = make(answers);
        if (from && to &&
            answers.note(clEnqueueWriteImage(queues[0], from, CL_TRUE, origin.data(), whole.data(), 0, 0,
                                             pixels_.data(), 0, nullptr, nullptr)) &&
            answers.note(clSetKernelArg(enlarge_, 0, sizeof from, &from)) &&
            answers.note(clSetKernelArg(enlarge_, 1, sizeof sampler, &sampler)) &&
            answers.note(clSetKernelArg(enlarge_, 2, sizeof to, &to)))
            answers.note(clEnqueueNDRangeKernel(queues.back(), enlarge_, 2, nullptr, whole.data(), nullptr, 0, nullptr,
                                                nullptr));
        for (const cl_mem each : {from, to})
            if (each)
                answers.note(clReleaseMemObject(each));
        answers.note(clReleaseSampler(sampler));
    });
}

TEST_F(ImageFaults, FillCopyAndBuffers) {
    sweep([&](Answers& answers) {
        const cl_mem from = make(answers), to = make(answers), buffer = create(answers);
        const cl_uint color[4] = {1, 2, 3, 4};
        if (from && to && buffer) {
            answers.note(
                clEnqueueFillImage(queues.back(), from, color, origin.data(), whole.data(), 0, nullptr, nullptr));
            answers.note(clFinish(queues.back()));
            answers.note(clEnqueueCopyImage(queues[0], from, to, corner.data(), origin.data(), part.data(), 0, nullptr,
                                            nullptr));
            answers.note(clFinish(queues[0]));
            answers.note(clEnqueueCopyImageToBuffer(queues.back(), to, buffer, origin.data(), part.data(), 64, 0,
                                                    nullptr, nullptr));
            answers.note(clFinish(queues.back()));
            answers.note(clEnqueueCopyBufferToImage(queues[0], buffer, from, 0, corner.data(), part.data(), 0, nullptr,
                                                    nullptr));
            answers.note(clFinish(queues[0]));
        }
        for (const cl_mem each : {from, to, buffer})
            if (each)
                answers.note(clReleaseMemObject(each));
    });
}

TEST_F(ImageFaults, MapWriteUnmap) {
    sweep([&](Answers& answers) {
        const cl_mem image = make(answers);
        if (!image)
            return;
        invert_on(answers, devices.size() - 1, image);
        size_t pitch = 0;
        cl_int error = CL_SUCCESS;
        void* const mapped = clEnqueueMapImage(queues.back(), image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, corner.data(),
                                               part.data(), &pitch, nullptr, 0, nullptr, nullptr, &error);
        if (answers.note(error)) {
            std::memset(mapped, 1, part[0] * 4);
            // An unmap that failed for lack of memory is tried again: the mapping must not stay.
            while (!answers.note(clEnqueueUnmapMemObject(queues.back(), image, mapped, 0, nullptr, nullptr))) {
            }
        }
        answers.note(clReleaseMemObject(image));
    });
}

TEST_F(ImageFaults, ImageOfABuffer) {
    sweep([&](Answers& answers) {
        const cl_mem buffer = create(answers);
        if (!buffer)
            return;
        if (const cl_mem image = make(answers, CL_MEM_READ_WRITE, nullptr, buffer)) {
            run_kernel(answers, 0, buffer, 1);
            answers.note(clFinish(queues[0]));
            invert_on(answers, devices.size() - 1, image);
            answers.note(clReleaseMemObject(image));
        }
        answers.note(clReleaseMemObject(buffer));
    });
}

}  // namespace
}  // namespace polder::test
