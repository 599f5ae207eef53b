// Interleaved private arrays (private_variables.h): addresses, fillings, and parts of words.
//
// A part of a word that is at one index for all lanes is loaded and stored with the row of all lanes' words: a shift moves it to its place. Where each
// lane has its own index, the words are gathered and shifted, for no processor gathers bytes; parts are stored one by one.
#include "lane_code.h"
#include "one_by_one.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MathExtras.h>

namespace polder::compiler::workgroup {

namespace {

constexpr unsigned bits_of_byte = 8;

const llvm::AllocaInst& variable_of(const llvm::Value& address) {
    return *llvm::cast<llvm::AllocaInst>(llvm::getUnderlyingObject(&address, 0));
}

// Calls `add` with each variable part of the address's offset and its factor. Returns the sum of the constant parts.
uint64_t for_each_part(const llvm::GetElementPtrInst& address, const llvm::DataLayout& layout,
                       llvm::function_ref<void(llvm::Value&, uint64_t)> add) {
    uint64_t constant = 0;
    for (auto part = llvm::gep_type_begin(address); part != llvm::gep_type_end(address); ++part) {
        const auto* const number = llvm::dyn_cast<llvm::ConstantInt>(part.getOperand());
        if (llvm::StructType* const structure = part.getStructTypeOrNull()) {
            const auto member = static_cast<unsigned>(number->getZExtValue());
            constant += layout.getStructLayout(structure)->getElementOffset(member).getFixedValue();
            continue;
        }
        const uint64_t size = part.getSequentialElementStride(layout).getFixedValue();
        if (number != nullptr)
            constant += static_cast<uint64_t>(number->getSExtValue()) * size;
        else
            add(*part.getOperand(), size);
    }
    return constant;
}

}  // namespace

// Each part of the offset is multiplied by the number of lanes.
llvm::Value* LaneCode::emit_interleaved(llvm::GetElementPtrInst& address, Form form) {
    const uint64_t scale = plan_.privates.scale(&address);
    llvm::Value* result = form(address.getPointerOperand());
    const uint64_t constant = for_each_part(address, function_.getDataLayout(), [&](llvm::Value& part, uint64_t size) {
        auto* const row = llvm::ArrayType::get(builder_.getInt8Ty(), size * scale);
        result = builder_.CreateGEP(row, result, form(&part));
    });
    return constant == 0 ? result
                         : builder_.CreateGEP(builder_.getInt8Ty(), result, builder_.getInt64(constant * scale));
}

// Fills the copies of all lanes at once, or, under a mask, row by row.
void LaneCode::fill_interleaved(llvm::MemSetInst& filling, llvm::Value* mask) {
    llvm::Value* const begin = scalar(filling.getRawDest());
    const uint64_t bytes = llvm::cast<llvm::ConstantInt>(filling.getLength())->getZExtValue();
    if (mask == nullptr) {
        builder_.CreateMemSet(begin, filling.getValue(), bytes * width_, filling.getDestAlign());
        return;
    }
    const auto element = static_cast<unsigned>(plan_.privates.stride(&variable_of(*filling.getRawDest())));
    const llvm::APInt byte = llvm::cast<llvm::ConstantInt>(filling.getValue())->getValue();
    llvm::Type* const row = wide(builder_.getIntNTy(element * bits_of_byte));
    llvm::Constant* const filled =
        llvm::ConstantInt::get(row, llvm::APInt::getSplat(element * bits_of_byte, byte.trunc(bits_of_byte)));
    for (uint64_t at = 0; at < bytes; at += element) {
        llvm::Value* const place = builder_.CreateGEP(builder_.getInt8Ty(), begin, builder_.getInt64(at * width_));
        llvm::Value* const before = builder_.CreateAlignedLoad(row, place, llvm::Align(element));
        builder_.CreateAlignedStore(builder_.CreateSelect(mask, filled, before), place, llvm::Align(element));
    }
}

// The distance of `address` from the beginning of one lane's copy, in bytes. `type`: an integer for each lane or for all.
llvm::Value* LaneCode::offset_in_copy(const llvm::Value* address, llvm::Type& type, Form form) {
    llvm::Value* offset = llvm::Constant::getNullValue(&type);
    uint64_t constant = 0;
    for (; !llvm::isa<llvm::AllocaInst>(address); address = llvm::cast<llvm::Instruction>(address)->getOperand(0))
        if (const auto* const place = llvm::dyn_cast<llvm::GetElementPtrInst>(address))
            constant += for_each_part(*place, function_.getDataLayout(), [&](llvm::Value& part, uint64_t size) {
                llvm::Value* const number = builder_.CreateSExtOrTrunc(form(&part), &type);
                offset = builder_.CreateAdd(offset, builder_.CreateMul(number, llvm::ConstantInt::get(&type, size)));
            });
    return builder_.CreateAdd(offset, llvm::ConstantInt::getSigned(&type, static_cast<int64_t>(constant)));
}

LaneCode::PartsOfWords LaneCode::parts_of_words(llvm::Value& address, uint64_t word_bytes, llvm::Value* mask) {
    const llvm::AllocaInst& variable = variable_of(address);
    const unsigned log = llvm::Log2_64(word_bytes), bits = static_cast<unsigned>(word_bytes) * bits_of_byte;
    const bool is_row = shapes_.of(&address).is_strided();
    PartsOfWords parts;
    parts.words = wide(builder_.getIntNTy(bits));
    llvm::Value* const copies = scalar(&const_cast<llvm::AllocaInst&>(variable));
    llvm::Type& type = is_row ? *builder_.getInt64Ty() : *wide(builder_.getInt32Ty());
    llvm::Value* offset = offset_in_copy(
        &address, type, [&](llvm::Value* operand) { return is_row ? scalar(operand) : vector(operand); });
    // Where no lane is active, the row may be none of the array.
    if (is_row && mask != nullptr && !llvm::isa<llvm::Constant>(offset))
        offset = builder_.CreateSelect(any(mask), offset, builder_.getInt64(0));
    llvm::Value* const word = builder_.CreateLShr(offset, log);
    llvm::Value* const byte = builder_.CreateAnd(offset, llvm::ConstantInt::get(&type, word_bytes - 1));
    llvm::Value* const shift = builder_.CreateShl(byte, llvm::Log2_64(bits_of_byte));
    if (is_row) {
        parts.row = builder_.CreateGEP(llvm::ArrayType::get(builder_.getInt8Ty(), word_bytes * width_), copies, word);
        parts.shift = splat(builder_.CreateZExtOrTrunc(shift, builder_.getIntNTy(bits)));
        return parts;
    }
    llvm::Value* const number = builder_.CreateAdd(builder_.CreateMul(word, llvm::ConstantInt::get(&type, width_)),
                                                   lane_offsets(builder_.getInt32Ty(), 1));
    parts.each_word = builder_.CreateGEP(parts.words->getScalarType(), copies, number);
    parts.each =
        builder_.CreateGEP(builder_.getInt8Ty(), copies, builder_.CreateAdd(builder_.CreateShl(number, log), byte));
    parts.shift = builder_.CreateZExtOrTrunc(shift, parts.words);
    return parts;
}

llvm::Value* LaneCode::load_part_of_word(llvm::LoadInst& load, uint64_t word_bytes, llvm::Value* mask) {
    const PartsOfWords parts = parts_of_words(*load.getPointerOperand(), word_bytes, mask);
    llvm::Type* const type = load.getType();
    const llvm::Align align(word_bytes);
    llvm::Value* words = nullptr;
    if (parts.row != nullptr) {
        words = builder_.CreateAlignedLoad(parts.words, parts.row, align);
    } else if (mask == nullptr && width_ <= accessed_one_by_one_max) {
        return load_one_by_one(builder_, *type, each_of(builder_, *parts.each), load.getAlign());
    } else if (!accesses_.has_gather(*parts.words->getScalarType(), align)) {
        return builder_.CreateMaskedGather(wide(type), parts.each, load.getAlign(), mask ? mask : all_lanes());
    } else {
        words = builder_.CreateMaskedGather(parts.words, parts.each_word, align, mask ? mask : all_lanes());
    }
    const auto bits = static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue());
    llvm::Value* const part =
        builder_.CreateTrunc(builder_.CreateLShr(words, parts.shift), wide(builder_.getIntNTy(bits)));
    return builder_.CreateBitCast(part, wide(type));
}

void LaneCode::store_part_of_word(llvm::StoreInst& store, uint64_t word_bytes, llvm::Value* mask) {
    const PartsOfWords parts = parts_of_words(*store.getPointerOperand(), word_bytes, mask);
    llvm::Type* const type = store.getValueOperand()->getType();
    llvm::Value* const values = vector(store.getValueOperand());
    if (parts.row == nullptr) {
        if (mask != nullptr || width_ > accessed_one_by_one_max)
            builder_.CreateMaskedScatter(values, parts.each, store.getAlign(), mask ? mask : all_lanes());
        else
            store_one_by_one(builder_, *values, each_of(builder_, *parts.each), store.getAlign());
        return;
    }
    const llvm::Align align(word_bytes);
    const auto bits = static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue());
    const auto bits_of_word = static_cast<unsigned>(word_bytes) * bits_of_byte;
    llvm::Value* const numbers =
        builder_.CreateZExt(builder_.CreateBitCast(values, wide(builder_.getIntNTy(bits))), parts.words);
    llvm::Value* const changed = builder_.CreateShl(
        llvm::ConstantInt::get(parts.words, llvm::APInt::getLowBitsSet(bits_of_word, bits)), parts.shift);
    llvm::Value* const before = builder_.CreateAlignedLoad(parts.words, parts.row, align);
    llvm::Value* after = builder_.CreateOr(builder_.CreateAnd(before, builder_.CreateNot(changed)),
                                           builder_.CreateShl(numbers, parts.shift));
    if (mask != nullptr)
        after = builder_.CreateSelect(mask, after, before);
    builder_.CreateAlignedStore(after, parts.row, align);
}

}  // namespace polder::compiler::workgroup
