#include "binary.h"

#include <cstring>
#include <spirv-tools/libspirv.h>

namespace polder::compiler::spirv {
namespace {

Error malformed(const std::string& why) { return Error{Status::invalid_value, "error: SPIR-V: " + why}; }

Result<std::vector<uint32_t>> words_of(std::span<const std::byte> bytes) {
    if (bytes.size() % sizeof(uint32_t) != 0 || bytes.size() < header_words * sizeof(uint32_t))
        return fail(malformed("a module is a whole number of 32-bit words, at least 5, but this one has " +
                              std::to_string(bytes.size()) + " bytes"));
    std::vector<uint32_t> words(bytes.size() / sizeof(uint32_t));
    std::memcpy(words.data(), bytes.data(), bytes.size());
    if (words[0] == __builtin_bswap32(spv::MagicNumber))
        for (uint32_t& word : words)
            word = __builtin_bswap32(word);
    if (words[0] != spv::MagicNumber)
        return fail(malformed("the module does not begin with SPIR-V's magic number"));
    return words;
}

std::string version_text(uint32_t version) {
    return std::to_string(version >> 16 & 0xff) + "." + std::to_string(version >> 8 & 0xff);
}

} // namespace

std::string Instruction::text(size_t index, size_t* next) const {
    std::string characters;
    for (; index < operands.size(); ++index)
        for (int shift = 0; shift < 32; shift += 8) {
            const auto character = static_cast<char>(operands[index] >> shift);
            if (character == 0) {
                if (next != nullptr)
                    *next = index + 1;
                return characters;
            }
            characters += character;
        }
    if (next != nullptr)
        *next = index;
    return characters;
}

Result<Binary> Binary::read(std::span<const std::byte> bytes) {
    POLDER_ASSIGN(words, words_of(bytes));
    if (words[1] < version_min || words[1] > version_max || (words[1] & 0xff) != 0)
        return fail(malformed("version " + version_text(words[1]) + " is not one of 1.0 to 1.6"));
    Binary binary(std::move(words));
    POLDER_TRY(binary.split());
    return binary;
}

Result<void> Binary::split() {
    for (size_t at = header_words; at < words_.size();) {
        const auto opcode = static_cast<spv::Op>(words_[at] & spv::OpCodeMask);
        const size_t count = words_[at] >> spv::WordCountShift;
        const auto number = static_cast<uint32_t>(instructions_.size() + 1);
        bool has_result = false, has_type = false;
        spv::HasResultAndType(opcode, &has_result, &has_type);
        const size_t leading = size_t{1} + (has_type ? 1 : 0) + (has_result ? 1 : 0);
        if (count < leading || count > words_.size() - at)
            return fail(malformed("instruction " + std::to_string(number) + ", " + name_of(opcode) + ": it has " +
                                  std::to_string(count) + " words, and " + std::to_string(words_.size() - at) +
                                  " are left in the module"));
        Instruction instruction{.opcode = opcode, .number = number};
        // Ids begin at 1.
        if ((has_type && words_[at + 1] == 0) || (has_result && words_[at + leading - 1] == 0))
            return fail(malformed("instruction " + std::to_string(number) + ", " + name_of(opcode) + ": id 0"));
        if (has_type)
            instruction.type = words_[at + 1];
        if (has_result)
            instruction.result = words_[at + leading - 1];
        instruction.operands = std::span{words_}.subspan(at + leading, count - leading);
        instructions_.push_back(instruction);
        at += count;
    }
    return {};
}

std::string name_of(spv::Op opcode) {
    const std::string name = spvOpcodeString(static_cast<uint32_t>(opcode));
    return name == "unknown" ? "opcode " + std::to_string(opcode) : "Op" + name;
}

} // namespace polder::compiler::spirv
