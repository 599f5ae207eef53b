// An offset in an interleaved array is multiplied by the number of lanes. This is right only for offsets of whole elements. So all accesses
// must have the size of an element and be aligned to it, which the alignments in LLVM's IR show. Parts of words are aligned to their size, so that
// each is in one word.
#include "private_variables.h"

#include <algorithm>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

namespace polder::compiler::workgroup {

namespace {

// The uses of a variable. They are known if they are only loads, stores, memsets, and addresses that are computed from it.
class Uses {
public:
    explicit Uses(const llvm::AllocaInst& variable)
        : layout_(variable.getDataLayout()), variable_(variable), are_known_(follow(variable)) {}

    // 0 when there are other uses, or numbers of several sizes that are no parts of words.
    [[nodiscard]] uint64_t element_bytes() const {
        constexpr uint64_t word_max = 8;
        return are_known_ && (!has_parts() || (are_numbers_ && element_bytes_ <= word_max)) ? element_bytes_ : 0;
    }
    [[nodiscard]] bool has_parts() const { return smallest_bytes_ != element_bytes_; }
    [[nodiscard]] const llvm::SmallPtrSetImpl<const llvm::Value*>& addresses() const { return addresses_; }
    [[nodiscard]] llvm::ArrayRef<const llvm::MemSetInst*> fillings() const { return fillings_; }

private:
    bool follow(const llvm::Value& address) {
        addresses_.insert(&address);
        return llvm::all_of(address.users(), [&](const llvm::User* user) {
            const auto& instruction = *llvm::cast<llvm::Instruction>(user);
            if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
                return load->isSimple() && is_element(*load, *load->getType());
            if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
                return store->isSimple() && store->getValueOperand() != &address &&
                       is_element(*store, *store->getValueOperand()->getType());
            if (const auto* filling = llvm::dyn_cast<llvm::MemSetInst>(&instruction))
                return is_filling(*filling);
            const bool is_address =
                llvm::isa<llvm::GetElementPtrInst>(instruction) || llvm::isa<llvm::AddrSpaceCastInst>(instruction);
            return is_address && instruction.getType()->isPointerTy() && follow(instruction);
        });
    }

    bool is_element(const llvm::Instruction& access, const llvm::Type& type) {
        auto& its = const_cast<llvm::Type&>(type);
        const uint64_t bytes = layout_.getTypeStoreSize(&its).getFixedValue();
        if (type.isAggregateType() || !layout_.typeSizeEqualsStoreSize(&its) ||
            bytes != layout_.getTypeAllocSize(&its).getFixedValue())
            return false;
        smallest_bytes_ = element_bytes_ == 0 ? bytes : std::min(smallest_bytes_, bytes);
        element_bytes_ = std::max(element_bytes_, bytes);
        are_numbers_ &= !type.isVectorTy() && llvm::isPowerOf2_64(bytes);
        return llvm::getLoadStoreAlignment(&access).value() >= bytes;
    }

    // Whether the memset begins at a constant offset, and has a constant length and value.
    bool is_filling(const llvm::MemSetInst& filling) {
        llvm::APInt offset(layout_.getIndexTypeSizeInBits(filling.getRawDest()->getType()), 0);
        const bool is_known =
            filling.getRawDest()->stripAndAccumulateConstantOffsets(layout_, offset, true) == &variable_;
        fillings_.push_back(&filling);
        return is_known && !filling.isVolatile() && llvm::isa<llvm::ConstantInt>(filling.getLength()) &&
               llvm::isa<llvm::ConstantInt>(filling.getValue());
    }

    const llvm::DataLayout& layout_;
    const llvm::AllocaInst& variable_;
    uint64_t element_bytes_ = 0, smallest_bytes_ = 0;
    bool are_numbers_ = true;
    llvm::SmallPtrSet<const llvm::Value*, 8> addresses_;
    llvm::SmallVector<const llvm::MemSetInst*> fillings_;
    bool are_known_;
};

// Whether `filling` begins and ends between elements. Under a mask, it is code for each of them.
bool fills_elements(const llvm::MemSetInst& filling, uint64_t element_bytes, bool is_masked, uint64_t size) {
    constexpr uint64_t masked_rows_max = 64;
    const llvm::DataLayout& layout = filling.getDataLayout();
    llvm::APInt offset(layout.getIndexTypeSizeInBits(filling.getRawDest()->getType()), 0);
    static_cast<void>(filling.getRawDest()->stripAndAccumulateConstantOffsets(layout, offset, true));
    const uint64_t length = llvm::cast<llvm::ConstantInt>(filling.getLength())->getZExtValue();
    return offset.getZExtValue() % element_bytes == 0 && length % element_bytes == 0 &&
           (!is_masked ||
            (length / element_bytes <= masked_rows_max && offset.ule(size) && length <= size - offset.getZExtValue()));
}

uint64_t size_of(const llvm::AllocaInst& variable) {
    return variable.getAllocationSize(variable.getDataLayout())->getFixedValue();
}

}  // namespace

void PrivateVariables::add(const llvm::AllocaInst& variable) {
    strides_[&variable] = llvm::alignTo(size_of(variable), variable.getAlign());
}

void PrivateVariables::interleave(llvm::function_ref<bool(const llvm::BasicBlock*)> is_masked) {
    for (auto& [value, stride] : strides_) {
        const auto& variable = *llvm::cast<llvm::AllocaInst>(value);
        const Uses uses(variable);
        const uint64_t element = uses.element_bytes();
        if (element == 0 || !llvm::isPowerOf2_64(element) || variable.getAlign().value() < element ||
            size_of(variable) % element != 0 || !llvm::all_of(uses.fillings(), [&](const llvm::MemSetInst* filling) {
                return fills_elements(*filling, element, is_masked(filling->getParent()), size_of(variable));
            }))
            continue;
        stride = element;
        interleaved_.insert(uses.addresses().begin(), uses.addresses().end());
        if (uses.has_parts())
            for (const llvm::Value* address : uses.addresses())
                words_[address] = element;
    }
}

uint64_t PrivateVariables::word_of(const llvm::Instruction& access) const {
    const uint64_t word = words_.lookup(llvm::getLoadStorePointerOperand(&access));
    const llvm::DataLayout& layout = access.getDataLayout();
    return word != 0 && layout.getTypeStoreSize(llvm::getLoadStoreType(&access)) < word ? word : 0;
}

llvm::SmallVector<const llvm::AllocaInst*> PrivateVariables::all() const {
    llvm::SmallVector<const llvm::AllocaInst*> variables;
    for (const auto& entry : strides_)
        variables.push_back(llvm::cast<llvm::AllocaInst>(entry.first));
    return variables;
}

uint64_t PrivateVariables::bytes_of_all_lanes(const llvm::AllocaInst& variable) const {
    return lanes_ * llvm::alignTo(size_of(variable), variable.getAlign());
}

llvm::Align PrivateVariables::alignment(const llvm::AllocaInst& variable) const {
    constexpr uint64_t vector_max = 64;
    if (!interleaved_.contains(&variable))
        return variable.getAlign();
    return std::max(variable.getAlign(),
                    llvm::Align(llvm::PowerOf2Ceil(std::min(vector_max, stride(&variable) * lanes_))));
}

}  // namespace polder::compiler::workgroup
