// Where each dimension has its stride, the place is a sum of products with arguments, and of arguments alone. In `in[x * height + y]` the factor is
// the length of a row, which no stride of y says. An argument that elsewhere is such a length, or the stride of what does not follow the work-item, is
// not taken for 1: it may be both only where the array has one row.
#include "element_strides.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

namespace {

constexpr size_t strides_max = 4;  // of one loop

using Factors = llvm::SmallPtrSet<const llvm::Value*, 8>;

// The arguments among the factors of a product, but for casts.
void add_arguments_of(llvm::Value& product, Factors& found) {
    auto* const operation = llvm::dyn_cast<llvm::BinaryOperator>(root_of(&product));
    if (operation == nullptr || operation->getOpcode() != llvm::Instruction::Mul)
        return;
    for (llvm::Value* operand : operation->operand_values())
        if (llvm::Value* const root = root_of(operand); AccessPlaces::is_argument(*root))
            found.insert(root);
}

class Strides {
public:
    Strides(llvm::ArrayRef<PlacedAccesses> accesses, const AccessPlaces& places) : places_(places) {
        for (const PlacedAccesses& access : accesses)
            add(access);
    }

    [[nodiscard]] KnownNumbers result() const {
        KnownNumbers result;
        for (const KnownNumber& stride : found_)
            if (!excluded_.contains(stride.root) && result.size() < strides_max)
                result.push_back(stride);
        return result;
    }

private:
    void add(const PlacedAccesses& access) {
        const Term* own = nullptr;
        bool is_strided = true;
        size_t others = 0;
        for (const Term& term : access.place.terms) {
            const bool follows = places_.follows_work_item(*term.value);
            is_strided &= follows ? own == nullptr && places_.factor_of(*term.value) != nullptr
                                  : AccessPlaces::is_from_arguments(*term.value);
            if (follows) {
                own = &term;
                continue;
            }
            Factors factors;
            add_arguments_of(*term.value, factors);
            others += factors.empty() ? 0 : 1;
            excluded_.insert(factors.begin(), factors.end());
        }
        if (own == nullptr)
            return;
        if (is_strided && others > 0 && own->bytes > 0 && access.element_bytes % own->bytes == 0)
            add_stride(*own, access.element_bytes / own->bytes);
        else if (!is_strided)
            for (const Term& term : access.place.terms)
                add_arguments_of(*term.value, excluded_);
    }

    void add_stride(const Term& product, int64_t units) {
        llvm::Value* const root = root_of(places_.factor_of(*product.value));
        const bool is_argument = AccessPlaces::is_argument(*root);
        if (is_argument && llvm::none_of(found_, [&](const KnownNumber& known) { return known.root == root; }))
            found_.push_back({.root = root, .value = units});
    }

    const AccessPlaces& places_;
    llvm::SmallVector<KnownNumber, 4> found_;
    Factors excluded_;
};

}  // namespace

KnownNumbers element_strides(llvm::ArrayRef<PlacedAccesses> accesses, const AccessPlaces& places) {
    return Strides(accesses, places).result();
}

}  // namespace polder::compiler::workgroup
