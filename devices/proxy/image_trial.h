// Which images a parameter of a kernel takes, found by trial with small ones (kernel_trial.h). One thread.
#pragma once

#include <optional>
#include <polder/image_limits.h>
#include <proxy/foreign_context.h>

namespace polder::proxy {

class ImageTrial {
public:
    explicit ImageTrial(const ForeignContext& context) : context_(context) {}
    ImageTrial(const ImageTrial&) = delete;
    ImageTrial& operator=(const ImageTrial&) = delete;
    ~ImageTrial();

    struct Taken {
        driver::ImageType type = driver::ImageType::image_2d;
        driver::ImageUse use = driver::ImageUse::read_write;
    };
    // Nothing when the implementation takes images of several types there, or of none: NVIDIA's takes all (decision 207).
    [[nodiscard]] std::optional<Taken> try_parameter(cl_kernel kernel, cl_uint index);

private:
    [[nodiscard]] bool takes(cl_kernel kernel, cl_uint index, Taken image);
    // Made when it is first needed; null when the implementation has none.
    [[nodiscard]] cl_mem image(Taken taken);

    const ForeignContext& context_;
    cl_mem elements_ = nullptr;  // of the 1D buffer image
    struct Made {
        bool is_tried = false;
        cl_mem handle = nullptr;
    } images_[driver::image_uses][driver::image_types];
};

}  // namespace polder::proxy
