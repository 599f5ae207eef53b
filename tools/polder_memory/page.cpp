// The page: apps/memory_viewer with what it shows of the trace (scene.h) in it, as columns in base64.
#include "exports.h"
#include "scene.h"
#include "viewer.inc"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace polder::tool {
namespace {

using trace::TraceFile;

void write_base64(const std::byte* data, size_t size, std::ostream& out) {
    constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((size + 2) / 3 * 4);
    for (size_t at = 0; at < size; at += 3) {
        uint32_t group = 0;
        for (size_t i = 0; i < 3; ++i)
            group = group << 8 | (at + i < size ? static_cast<uint32_t>(data[at + i]) : 0);
        for (size_t i = 0; i < 4; ++i)
            text += at + i <= size ? letters[(group >> (18 - 6 * i)) & 63] : '=';
    }
    out << text;
}

// A column of numbers, seven bits a byte, the low ones first; all bytes of a number but the last have the bit 128.
class Column {
public:
    void add(uint64_t value) {
        for (; value >= 128; value >>= 7)
            bytes_.push_back(static_cast<std::byte>(value | 128));
        bytes_.push_back(static_cast<std::byte>(value));
    }
    // Of either sign: 0, -1, 1, -2, ...
    void add_signed(int64_t value) {
        add(value < 0 ? ~static_cast<uint64_t>(value) * 2 + 1 : static_cast<uint64_t>(value) * 2);
    }
    void write(const char* name, std::ostream& out) const {
        out << name << ":\"";
        write_base64(bytes_.data(), bytes_.size(), out);
        out << "\"";
    }

private:
    std::vector<std::byte> bytes_;
};

// JavaScript's numbers are doubles. Larger numbers are written as this one, so that twice the difference of two numbers is exact.
constexpr uint64_t number_max = uint64_t{1} << 51;

// Writes tables: `n`, how many rows, and each column by its name, as differences to the row before.
class TableWriter {
public:
    explicit TableWriter(std::ostream& out) : out_(out) {}

    template <class Row, class... Columns>
    void write(const std::vector<Row>& rows, const Columns&... columns) {
        out_ << "n:" << rows.size();
        (write_column(rows, columns), ...);
    }

private:
    template <class Row, class Value>
    void write_column(const std::vector<Row>& rows, const std::pair<const char*, Value>& column) {
        Column bytes;
        int64_t last = 0;
        for (const Row& row : rows) {
            const auto value = static_cast<int64_t>(std::min<uint64_t>(std::invoke(column.second, row), number_max));
            bytes.add_signed(value - last);
            last = value;
        }
        out_ << ",";
        bytes.write(column.first, out_);
    }

    std::ostream& out_;
};

// A list of objects in braces, separated by commas.
template <class Each, class Write>
void write_list(const char* name, const Each& each, std::ostream& out, const Write& write) {
    out << name << ":[";
    bool is_first = true;
    for (const auto& one : each) {
        out << (std::exchange(is_first, false) ? "{" : ",\n{");
        write(one);
        out << "}";
    }
    out << "],\n";
}

void write_scene(const Scene& scene, std::ostream& out) {
    using Block = Scene::Block;
    using Level = Scene::Level;
    TableWriter table{out};
    const auto name = [](const char* text, auto value) { return std::pair{text, value}; };
    const auto write_amounts = [&](const std::vector<Scene::Amount>& amounts) {
        table.write(amounts, name("ns", &Scene::Amount::ns), name("value", &Scene::Amount::value));
    };
    write_list("spaces", scene.spaces, out, [&](const auto& space) {
        out << "id:" << space.first << ",memory:" << std::min(space.second.memory_bytes, number_max) << ",\nblocks:{";
        table.write(space.second.blocks, name("begin", &Block::begin_ns),
                    name("life", [](const Block& block) { return block.end_ns - block.begin_ns; }),
                    // 0: not used, else 1 + how long after its begin.
                    name("used",
                         [](const Block& block) {
                             return block.used_ns < block.begin_ns ? 0 : 1 + block.used_ns - block.begin_ns;
                         }),
                    name("address", &Block::address), name("bytes", &Block::bytes), name("storage", &Block::storage));
        out << "},\nlevels:{";
        table.write(space.second.levels, name("ns", &Level::ns), name("allocated", &Level::allocated),
                    name("held", &Level::held), name("reserved", &Level::reserved));
        out << "},\nregions:{";
        table.write(space.second.regions, name("begin", &Scene::Region::begin), name("end", &Scene::Region::end));
        out << "}";
    });
    write_list("transfers", scene.transfers, out, [&](const auto& link) {
        out << "from:" << link.first.from << ",to:" << link.first.to << ",";
        write_amounts(link.second);
    });
    write_list("evictions", scene.evictions, out, [&](const auto& space) {
        out << "space:" << space.first << ",";
        write_amounts(space.second);
    });
    out << "launches:{";
    write_amounts(scene.launches);
    const auto write_reports = [&](const char* of, const std::vector<Scene::Report>& reports) {
        out << "},\n" << of << ":{";
        table.write(reports, name("ns", &Scene::Report::ns), name("text", &Scene::Report::text),
                    name("bytes", &Scene::Report::bytes), name("space", &Scene::Report::space));
    };
    write_reports("failures", scene.failures);
    write_reports("refusals", scene.refusals);
    std::vector<std::pair<uint64_t, uint64_t>> kernels;
    for (const auto& [storage, texts] : scene.kernels_of)
        for (const uint64_t text : texts)
            kernels.emplace_back(storage, text);
    using Pair = std::pair<uint64_t, uint64_t>;
    out << "},\nkernels:{";
    table.write(kernels, name("storage", &Pair::first), name("text", &Pair::second));
    out << "},\n";
}

void write_data(const TraceFile& trace, std::ostream& out) {
    const Scene scene = make_scene(trace);
    out << "{\nprocess:" << trace.header.process << ",events:" << trace.events.size() << ",end:" << scene.end_ns
        << ",\n";
    write_scene(scene, out);
    out << "texts:{";
    bool first = true;
    for (const auto& [id, text] : trace.texts) {
        out << (std::exchange(first, false) ? "" : ",") << id << ":";
        write_json_string(text, out);
    }
    out << "}}";
}

}  // namespace

void write_page(const TraceFile& trace, std::ostream& out) {
    const std::string_view page(reinterpret_cast<const char*>(viewer_page), sizeof viewer_page);
    constexpr std::string_view mark = "/*TRACE*/";
    const size_t place = page.find(mark);
    out << page.substr(0, place);
    write_data(trace, out);
    out << page.substr(place + mark.size());
}

}  // namespace polder::tool
