// Indexing by places in the order of elements, or by a mask.
#include "native.h"
#include "pointwise.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;

void check_places(const Tensor& self, const Tensor& index, const char* name) {
    TORCH_CHECK(index.scalar_type() == at::kLong, name, "(): Expected a long tensor for index, but got ",
                index.scalar_type());
    TORCH_CHECK_INDEX(self.numel() != 0 || index.numel() == 0, name, "(): tried to take from an empty tensor");
    check_same_device(self.device(), index);
}

Tensor take(const Tensor& self, const Tensor& index) {
    check_places(self, index, "take");
    return self.reshape({-1}).index_select(0, index.reshape({-1})).view(index.sizes());
}
Tensor& take_out(const Tensor& self, const Tensor& index, Tensor& out) {
    check_type(self.scalar_type(), out);
    at::native::resize_output(out, index.sizes());
    return out.copy_(torch_opencl::take(self, index));
}

// Changes the elements of `self` in their order: `change` gets them as a vector.
template <typename Change>
Tensor& in_order(Tensor& self, const Change& change) {
    Tensor flat = self.contiguous().view({-1});
    change(flat);
    if (!flat.is_alias_of(self))
        self.copy_(flat.view(self.sizes()));
    return self;
}

Tensor& put_(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
    check_places(self, index, "put_");
    check_type(self.scalar_type(), source);
    TORCH_CHECK(index.numel() == source.numel(),
                "put_(): Expected source and index to have the same number of elements, but got "
                "source.numel() = ",
                source.numel(), ", index.numel() = ", index.numel());
    const Tensor places = index.reshape({-1}), values = source.reshape({-1});
    return in_order(self, [&](Tensor& flat) {
        if (accumulate)
            flat.index_add_(0, places, values);
        else
            flat.index_copy_(0, places, values);
    });
}

Tensor& masked_scatter_(Tensor& self, const Tensor& mask, const Tensor& source) {
    check_type(self.scalar_type(), source);
    check_same_device(self.device(), mask);
    check_same_device(self.device(), source);
    TORCH_CHECK(mask.scalar_type() == at::kBool,
                "masked_scatter_ only supports boolean masks, but got mask with dtype ", mask.scalar_type());
    const Tensor places = at::nonzero(mask.expand(self.sizes()).reshape({-1})).squeeze(1);
    TORCH_CHECK(
        places.numel() <= source.numel(),
        "masked_scatter: expected self and source to have same dtypes and source to have at least as many elements "
        "as the mask has ones");
    return in_order(
        self, [&](Tensor& flat) { flat.index_copy_(0, places, source.reshape({-1}).narrow(0, 0, places.numel())); });
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("take", torch_opencl::take));
    m.impl(NATIVE("take.out", take_out));
    m.impl(NATIVE("put_", put_));
    m.impl(NATIVE("masked_scatter_", masked_scatter_));
}

}  // namespace torch_opencl
