// PickleWriter: dictionaries, lists, texts and numbers as a pickle of Python, protocol 2.
//
// PyTorch's memory viewer has a reader in JavaScript that knows only some opcodes, so there are no floats and no tuples here. A list is
// written in batches of 1,000, as Python does, because the viewer passes each batch to one call. A text that was written before is written as a reference. Used by
// one thread.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace polder::tool {

class PickleWriter {
public:
    explicit PickleWriter(std::ostream& out) : out_(out) { out_ << "\x80\x02"; }
    // Ends the pickle. Every dictionary and list must have been ended.
    void end() { out_ << '.'; }

    void begin_dictionary() { out_ << "}("; }
    // At most 1,000 keys.
    void key(std::string_view name) { text(name); }
    void end_dictionary() { out_ << 'u'; }

    void begin_list() {
        out_ << ']';
        list_sizes_.push_back(0);
    }
    // Before each element.
    void element() {
        uint64_t& size = list_sizes_.back();
        if (size % batch == 0)
            out_ << (size == 0 ? "(" : "e(");
        ++size;
    }
    void end_list() {
        if (list_sizes_.back() != 0)
            out_ << 'e';
        list_sizes_.pop_back();
    }

    void number(uint64_t value) {
        if (value < 0x100)
            write('K', value, 1);
        else if (value < 0x10000)
            write('M', value, 2);
        else if (value < 0x80000000)
            write('J', value, 4);
        else if (value >> 63 == 0)
            write_long(value, 8);
        else
            write_long(value, 9);  // the highest bit would be a sign
    }
    void truth(bool value) { out_ << (value ? '\x88' : '\x89'); }
    void text(std::string_view value) {
        const auto known = texts_.find(value);
        if (known != texts_.end())
            return write('h', known->second, 1);
        write('X', value.size(), 4);
        out_ << value;
        if (texts_.size() == 0x100)
            return;
        write('q', texts_.size(), 1);
        texts_.emplace(value, texts_.size());
    }

private:
    static constexpr uint64_t batch = 1000;

    void write(char opcode, uint64_t value, uint32_t bytes) {
        out_ << opcode;
        write_bytes(value, bytes);
    }
    void write_long(uint64_t value, uint32_t bytes) {
        out_ << '\x8a' << static_cast<char>(bytes);
        write_bytes(value, bytes);
    }
    void write_bytes(uint64_t value, uint32_t bytes) {
        for (uint32_t i = 0; i < bytes; ++i)
            out_ << static_cast<char>(i < 8 ? value >> (8 * i) & 0xff : 0);
    }

    std::ostream& out_;
    std::vector<uint64_t> list_sizes_;  // of the lists that have not ended yet
    std::map<std::string, uint64_t, std::less<>> texts_;
};

}  // namespace polder::tool
