// Images are first copied with their border of zeros, so that no tap needs a condition, and divided by the phases of the stride, so that taps of
// neighbouring places are neighbours. Then the lanes of a forward pass are places of several rows of the copy, borders included: each tap is
// one vector that is loaded wherever it begins, as in a product of matrices that reads its second factor from a place for each row. Of many channels
// it adds the sums of a few at a time, which is more accurate (decision 296). What was computed for
// borders is left out when a tile is stored. The gradient of the weights has outputs as lanes, and taps in registers, over all places.
#include "convolution_direct.h"

#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <algorithm>

namespace torch_opencl {
namespace {

using at::Tensor;

constexpr int64_t band_columns = 512;  // of a tile whose results wait in local memory
constexpr int64_t registers_of_sums = 27;
constexpr int64_t taps_of_part = 256;  // of a sum, before it is added to those of other channels

int64_t quotient_up(int64_t n, int64_t divisor) { return (n + divisor - 1) / divisor; }
int64_t lanes_of(const Device& device) { return device.float_lanes >= 16 ? 16 : 8; }

// The size of one phase of the padded image, in one dimension.
int64_t phase_size(const Axis& axis) {
    return quotient_up((axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1, axis.stride);
}

// The padded copy [N][C][SH][SW][rows][columns].
struct Padded {
    Padded(const Window& w, int64_t groups)
        : rows(phase_size(w.y)), columns(phase_size(w.x)), lines(groups * w.c * w.y.stride * w.x.stride * rows) {}
    int64_t rows, columns;
    int64_t lines;  // of one image, in all channels and phases
};

std::string constants(const Device& device, const Window& w) {
    std::string text;
    const auto define = [&text](const char* name, int64_t value) {
        text += std::string("#define ") + name + " " + std::to_string(value) + "\n";
    };
    define("LANES", lanes_of(device)), define("KH", w.y.kernel), define("KW", w.x.kernel), define("SH", w.y.stride);
    define("SW", w.x.stride), define("PH", w.y.padding), define("PW", w.x.padding), define("DH", w.y.dilation);
    define("DW", w.x.dilation), define("SPREAD_Y", w.y.spread), define("SPREAD_X", w.x.spread);
    return text;
}

std::string accessors(const char* name, c10::ScalarType type) {
    return access_macros(name, type) + "#define " + name + "_T " + storage_name(type) + "\n";
}

const char* const pad_text = R"(
kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void pad(global const I_T* image, global T* padded, long image_stride, int h, int w, int rows, int columns, int lines, int lines_each) {
  int lane = get_local_id(0), begin = (int)get_group_id(0) * lines_each, end = min(lines, begin + lines_each);
  image += get_group_id(1) * image_stride;
  padded += get_group_id(1) * (long)lines * columns;
  for (int line = begin; line < end; ++line) {
    int row = line % rows, phase = line / rows % (SH * SW), c = line / rows / (SH * SW);
    int y = row * SH + phase / SW - PH, shift = phase % SW - PW, is_row = y >= 0 && y % SPREAD_Y == 0 && y / SPREAD_Y < h;
    global const I_T* from = image + ((long)c * h + y / SPREAD_Y) * w;
    for (int column = lane; column < columns; column += LANES) {
      int x = column * SW + shift;
      T v = 0;
      if (is_row && x >= 0 && x % SPREAD_X == 0 && x / SPREAD_X < w) v = LOADI(from, x / SPREAD_X);
      padded[(long)line * columns + column] = v;
    }
  }
}
)";

Tensor padded_copy(const Tensor& image, const Window& w, int64_t groups = 1) {
    const Device& device = opencl_device(image);
    const auto type = image.scalar_type();
    const Padded size(w, groups);
    const std::string text = constants(device, w);
    // Vectors of the last places end behind the copy.
    const Tensor padded = at::empty({image.size(0) * size.lines * size.columns + 4 * lanes_of(device)},
                                    image.options().dtype(compute_type(type)));
    Launch launch(device, kernel_of(device, "pad " + text + short_name(type), "pad", [&] {
                      return compute_type_macros(type) + accessors("I", type) + text + pad_text;
                  }));
    const int64_t parts = std::clamp<int64_t>(4 * int64_t{device.compute_units} / image.size(0), 1, size.lines);
    const int64_t lines_each = quotient_up(size.lines, parts);
    launch.read(image).written(padded).value(image.stride(0));
    for (const int64_t value : {w.y.in, w.x.in, size.rows, size.columns, size.lines, lines_each})
        launch.value(static_cast<int32_t>(value));
    const auto lanes = static_cast<size_t>(lanes_of(device));
    launch.run(
        {static_cast<size_t>(quotient_up(size.lines, lines_each)) * lanes, static_cast<size_t>(image.size(0)), 1},
        {lanes, 1, 1});
    return padded;
}

const char* const forward_text = R"(
#define PHASE_Y(ky) ((ky) * DH % SH * SW * plane + (ky) * DH / SH * S.columns)
#define PHASE_X(kx) ((kx) * DW % SW * plane + (kx) * DW / SW)
#define WEIGHTS(r) global const W_T* restrict w##r = weight + (long)min(m + r, S.outputs - 1) * S.output_stride;
#define DECLARE(r) T x##r = 0, y##r = 0;
#define STEP(r) { T v = LOADW(w##r, tap); x##r = fma(v, p, x##r); y##r = fma(v, q, y##r); }
#define STEP_ONE(r) x##r = fma(LOADW(w##r, tap), p, x##r);
#define ADD(r) x##r += mine[r * S.pitch]; y##r += mine[r * S.pitch + LANES];
#define ADD_ONE(r) x##r += mine[r * S.pitch];
#define KEEP(r) mine[r * S.pitch] = x##r; mine[r * S.pitch + LANES] = y##r;
#define KEEP_ONE(r) mine[r * S.pitch] = x##r;
#if HAS_PARTS
#define FOR_PARTS for (int begin = 0, end = min(S.channels, CHANNELS); begin < S.channels; begin = end, end = min(S.channels, end + CHANNELS))
#define IF_ADDED(ADD_ALL) if (begin > 0) { ADD_ALL }
#else
#define FOR_PARTS for (int begin = 0, end = S.channels; begin < end; begin = end)
#define IF_ADDED(ADD_ALL)
#endif
#define FOR_TAPS(STEPS) for (int c = begin; c < end; ++c) \
  for (int ky = 0; ky < KH; ++ky) { \
    global const T* line = at + c * S.channel + PHASE_Y(ky); \
    long first_tap = c * S.channel_stride + TAP(ky * KW); \
    _Pragma("unroll") for (int kx = 0; kx < KW; ++kx) { long tap = first_tap + TAP_STEP * kx; STEPS } \
  }
typedef struct {
  long out_stride, group_stride, output_stride, channel_stride, channel;
  int groups, tiles, outputs, channels, oh, ow, rows, columns, band, pitch;
} Sizes;
kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void convolve(global const T* restrict padded, global const W_T* restrict weight, global const B_T* bias, global O_T* out, Sizes S,
              local T* sums) {
  int lane = get_local_id(0), group = (int)get_group_id(0) / S.tiles, m = (int)get_group_id(0) % S.tiles * TILE_ROWS;
  int first_y = (int)get_group_id(1) * S.band, band = min(S.band, S.oh - first_y), width = (band - 1) * S.columns + S.ow;
  long plane = (long)S.rows * S.columns;
  padded += (get_group_id(2) * S.groups + group) * S.channels * S.channel + first_y * S.columns + lane;
  weight += group * S.group_stride;
  FOR_ROWS(WEIGHTS)
  for (int first = 0; first < width; first += 2 * LANES) {
    global const T* at = padded + first;
    local T* mine = sums + first + lane;
    FOR_PARTS {
      FOR_ROWS(DECLARE)
      if (first + LANES < width) {
        FOR_TAPS(T p = line[PHASE_X(kx)]; T q = line[PHASE_X(kx) + LANES]; FOR_ROWS(STEP))
        IF_ADDED(FOR_ROWS(ADD))
        FOR_ROWS(KEEP)
      } else {
        FOR_TAPS(T p = line[PHASE_X(kx)]; FOR_ROWS(STEP_ONE))
        IF_ADDED(FOR_ROWS(ADD_ONE))
        FOR_ROWS(KEEP_ONE)
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int end = min(TILE_ROWS, S.outputs - m);
  m += group * S.outputs;
  for (int r = 0; r < end; ++r) {
    T added = 0;
    if (HAS_BIAS) added = LOADB(bias, m + r);
    global O_T* to = out + get_group_id(2) * S.out_stride + ((long)(m + r) * S.oh + first_y) * S.ow;
    for (int y = 0; y < band; ++y)
      for (int x = lane; x < S.ow; x += LANES) STOREO(to, y * S.ow + x, sums[r * S.pitch + y * S.columns + x] + added);
  }
}
)";

// The kernel's structure of the same name.
struct Sizes {
    int64_t out_stride, group_stride, output_stride, channel_stride, channel;
    int32_t groups, tiles, outputs, channels, oh, ow, rows, columns, band, pitch;
};

// Rows of a tile: 24 or 16 vectors of sums where there are 32 registers, else 12 or 8; fewer where a group has few outputs. The size that computes fewer rows for
// nothing.
int64_t tile_rows(const Device& device, int64_t outputs) {
    if (outputs <= 2)
        return outputs;
    const int64_t most = lanes_of(device) == 16 ? 12 : 6, fewer = lanes_of(device) == 16 && outputs > 4 ? 8 : 4;
    return quotient_up(outputs, fewer) * fewer < quotient_up(outputs, most) * most ? fewer : most;
}

std::string for_rows(int64_t rows) {
    std::string text = "#define TILE_ROWS " + std::to_string(rows) + "\n#define FOR_ROWS(X)";
    for (int64_t row = 0; row < rows; ++row)
        text += " X(" + std::to_string(row) + ")";
    return text + "\n";
}

const char* const weights_text = R"(
// Panels [places of all images][PANEL outputs], with zeros behind the last output: vectors that follow one another.
kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void turn(global const G_T* grad, global T* turned, long grad_stride, int outputs, int places, int places_each) {
  int output = get_global_id(0), begin = (int)get_group_id(1) * places_each, end = min(places, begin + places_each);
  global const G_T* from = grad + get_group_id(2) * grad_stride + (long)min(output, outputs - 1) * places;
  turned += (output / PANEL * get_num_groups(2) + get_group_id(2)) * places * PANEL + output % PANEL;
  for (int place = begin; place < end; ++place) {
    T v = LOADG(from, place);
    turned[(long)place * PANEL] = output < outputs ? v : (T)0;
  }
}
#define PHASE_Y(ky) ((ky) * DH % SH * SW * plane + (ky) * DH / SH * columns)
#define PHASE_X(kx) ((kx) * DW % SW * plane + (kx) * DW / SW)
// A group computes LINES lines of the kernels of all channels, KW taps each, for a panel of outputs and some of the images.
kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void weight_gradient(global const T* restrict padded, global const T* restrict turned, global O_T* out, int images, int images_each,
                     int outputs, int channels, int oh, int ow, int rows, int columns) {
  int lane = get_local_id(0), output = (int)get_group_id(1) * PANEL + lane, first_line = (int)get_group_id(0) * LINES;
  int begin = (int)get_group_id(2) * images_each, end = min(images, begin + images_each);
  long plane = (long)rows * columns, channel = SH * SW * plane;
  DECLARE
  for (int n = begin; n < end; ++n) {
    global const T* image = padded + n * channels * channel;
    global const T* grad = turned + (get_group_id(1) * images + n) * oh * ow * PANEL + lane;
    POINTERS
    for (int y = 0; y < oh; ++y)
      for (int x = 0; x < ow; ++x) {
        long at = (long)y * columns + x;
        VALUES
        STEPS
        grad += PANEL;
      }
  }
  out += get_group_id(2) * outputs * (long)channels * KH * KW;
  FINISH
}
)";

const char* const depthwise_text = R"(
#define PHASE_Y(ky) ((ky) * DH % SH * SW * plane + (ky) * DH / SH * columns)
#define PHASE_X(kx) ((kx) * DW % SW * plane + (kx) * DW / SW)
// A group computes LINES lines of one channel's kernel, with places as lanes.
kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void depthwise_gradient(global const T* restrict padded, global const G_T* restrict grads, global O_T* out, long grad_stride, int images,
                        int oh, int ow, int rows, int columns) {
  local T partial[LINES * KW * LANES];
  const int channels = 1;
  int lane = get_local_id(0), first_line = (int)get_group_id(0) * LINES;
  long plane = (long)rows * columns, channel = SH * SW * plane;
  DECLARE
  for (int n = 0; n < images; ++n) {
    global const T* image = padded + (n * get_num_groups(1) + get_group_id(1)) * channel;
    global const G_T* grad = grads + n * grad_stride + get_group_id(1) * oh * ow;
    POINTERS
    for (int y = 0; y < oh; ++y)
      for (int x = lane; x < ow; x += LANES) {
        long at = (long)y * columns + x;
        T g0 = LOADG(grad, y * ow + x);
        STEPS
      }
  }
  KEEP
  barrier(CLK_LOCAL_MEM_FENCE);
  out += get_group_id(1) * KH * KW + first_line * KW;
  for (int tap = lane; tap < min(LINES, KH - first_line) * KW; tap += LANES) {
    T sum = 0;
    for (int i = 0; i < LANES; ++i) sum += partial[tap * LANES + i];
    STOREO(out, tap, sum);
  }
}
)";

// The text of the sums' declarations, pointers and steps, for `lines` lines of a kernel and `vectors` vectors of outputs.
std::string weight_macros(const Window& w, int64_t lines, int64_t vectors) {
    std::string declare, pointers, values, steps, finish, keep;
    const auto name = [](const char* prefix, int64_t a) { return prefix + std::to_string(a); };
    for (int64_t v = 0; v < vectors; ++v)
        values += " T " + name("g", v) + " = grad[" + std::to_string(v) + " * LANES];";
    for (int64_t l = 0; l < lines; ++l) {
        const std::string line = "min(first_line + " + std::to_string(l) + ", channels * KH - 1)";
        pointers += " global const T* restrict " + name("p", l) + " = image + " + line + " / KH * channel + PHASE_Y(" +
                    line + " % KH);";
        for (int64_t k = 0; k < w.x.kernel; ++k) {
            const std::string tap = std::to_string(l) + "_" + std::to_string(k);
            steps += " { T v = " + name("p", l) + "[at + PHASE_X(" + std::to_string(k) + ")];";
            for (int64_t v = 0; v < vectors; ++v) {
                const std::string sum = "s" + tap + "_" + std::to_string(v);
                declare += " T " + sum + " = 0;";
                keep += " partial[" + std::to_string(l * w.x.kernel + k) + " * LANES + lane] = " + sum + ";";
                steps += " " + sum + " = fma(v, " + name("g", v) + ", " + sum + ");";
                finish += " if (first_line + " + std::to_string(l) + " < channels * KH && output + " +
                          std::to_string(v) + " * LANES < outputs) STOREO(out, ((output + " + std::to_string(v) +
                          " * LANES) * (long)channels * KH + first_line + " + std::to_string(l) + ") * KW + " +
                          std::to_string(k) + ", " + sum + ");";
            }
            steps += " }";
        }
    }
    return "#define DECLARE" + declare + "\n#define POINTERS" + pointers + "\n#define VALUES" + values +
           "\n#define STEPS" + steps + "\n#define FINISH" + finish + "\n#define KEEP" + keep + "\n#define LINES " +
           std::to_string(lines) + "\n#define PANEL (LANES * " + std::to_string(vectors) + ")\n";
}

bool has_kernels(const Device& device, c10::ScalarType type, const Window& w) {
    return !device.is_gpu && device.float_lanes >= 8 && compute_type(type) == c10::kFloat && !w.is_deep();
}

// Where there are few places, vectors of borders and the copy cost more than unfolding does. The copy of a larger stride is a gather.
bool has_enough_places(const Window& w) {
    return w.y.kernel * w.x.kernel > 1 && w.places() >= (w.y.stride * w.x.stride == 1 ? 16 : 64);
}

}  // namespace

bool suits_direct(const Device& device, c10::ScalarType type, const Window& w, int64_t groups) {
    // Groups have few rows: a product would compute tiles that are mostly empty.
    return has_kernels(device, type, w) && phase_size(w.x) <= band_columns && (groups > 1 || has_enough_places(w));
}

bool suits_direct_weights(const Device& device, c10::ScalarType type, const Window& w, int64_t images) {
    // Results lie apart from each other: to store them costs as much as some places do.
    return has_kernels(device, type, w) && has_enough_places(w) && w.x.kernel <= registers_of_sums &&
           images * w.places() >= 128;
}

bool suits_depthwise(const Device& device, c10::ScalarType type, const Window& w, int64_t groups, int64_t outputs) {
    return has_kernels(device, type, w) && groups > 1 && w.c == 1 && outputs == 1 && w.x.kernel <= registers_of_sums;
}

void convolve_directly(const Tensor& image, const Taps& taps, const Tensor& bias, const Tensor& out, const Window& w) {
    const Device& device = opencl_device(image);
    const auto type = image.scalar_type();
    const Tensor padded = padded_copy(image, w, taps.groups);
    const Padded size(w, taps.groups);
    const int64_t outputs = out.size(1) / taps.groups, rows = tile_rows(device, outputs), lanes = lanes_of(device);
    const int64_t bands = quotient_up(w.y.out, std::max<int64_t>(band_columns / size.columns, 1));
    const int64_t band = quotient_up(w.y.out, bands), pitch = quotient_up(band * size.columns, 2 * lanes) * 2 * lanes;
    const int64_t channels = std::max<int64_t>(taps_of_part / (w.y.kernel * w.x.kernel), 1);
    const std::string text = constants(device, w) + for_rows(rows) + "#define HAS_BIAS " +
                             (bias.defined() ? "1" : "0") + "\n#define HAS_PARTS " + (w.c > channels ? "1" : "0") +
                             "\n#define CHANNELS " + std::to_string(channels) + "\n#define TAP(t) " +
                             (taps.is_turned ? "(KH * KW - 1 - (t))" : "(t)") + "\n#define TAP_STEP " +
                             (taps.is_turned ? "-1" : "1") + "\n";
    Launch launch(device, kernel_of(device, "convolve " + text + short_name(type), "convolve", [&] {
                      return compute_type_macros(type) + accessors("W", type) + accessors("B", type) +
                             accessors("O", type) + text + forward_text;
                  }));
    const auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
    launch.read(padded).read(taps.weight).read(bias.defined() ? bias : taps.weight).written(out);
    const int64_t tiles = quotient_up(outputs, rows);
    launch.value(Sizes{out.stride(0), taps.group_stride, taps.output_stride, taps.channel_stride,
                       w.y.stride * w.x.stride * size.rows * size.columns, narrow(taps.groups), narrow(tiles),
                       narrow(outputs), narrow(w.c), narrow(w.y.out), narrow(w.x.out), narrow(size.rows),
                       narrow(size.columns), narrow(band), narrow(pitch)});
    launch.local(static_cast<size_t>(rows * pitch) * sizeof(float));
    launch.run({static_cast<size_t>(taps.groups * tiles * lanes), static_cast<size_t>(bands),
                static_cast<size_t>(image.size(0))},
               {static_cast<size_t>(lanes), 1, 1});
}

void weight_gradient_directly(const Tensor& image, const Tensor& grad_out, const Tensor& grad_weight, const Window& w) {
    const Device& device = opencl_device(image);
    const auto type = image.scalar_type();
    const Tensor padded = padded_copy(image, w);
    const Padded size(w, 1);
    const int64_t images = image.size(0), outputs = grad_out.size(1), lanes = lanes_of(device);
    const int64_t registers = lanes == 16 ? registers_of_sums : 12, all_lines = w.c * w.y.kernel;
    const int64_t vectors = outputs > lanes && 2 * w.x.kernel <= registers ? 2 : 1;
    // No more lines than there are registers, and as many in each group.
    const int64_t lines_max = std::max<int64_t>(registers / (vectors * w.x.kernel), 1);
    const int64_t lines = quotient_up(all_lines, quotient_up(all_lines, lines_max));
    const int64_t panels = quotient_up(outputs, lanes * vectors), turned_outputs = panels * lanes * vectors;
    // The sums of several parts of the images are added afterwards.
    const int64_t units = device.compute_units, groups = quotient_up(all_lines, lines) * panels;
    const int64_t images_each = quotient_up(images, std::min(images, quotient_up(units, groups)));
    const int64_t parts = quotient_up(images, images_each);
    const std::string text = constants(device, w) + weight_macros(w, lines, vectors);
    const auto in_sums = parts > 1 ? compute_type(type) : type;
    const auto source = [&] {
        return compute_type_macros(type) + accessors("G", type) + accessors("O", in_sums) + text + weights_text;
    };
    const std::string key = text + short_name(type) + short_name(in_sums);
    const Tensor turned = at::empty({images * w.places() * turned_outputs}, image.options().dtype(compute_type(type)));
    {
        Launch launch(device, kernel_of(device, "turn " + key, "turn", source));
        const int64_t places_each = std::max<int64_t>(w.places() / std::max<int64_t>(2 * units / images, 1), 64);
        launch.read(grad_out).written(turned).value(grad_out.stride(0));
        for (const int64_t value : {outputs, w.places(), places_each})
            launch.value(static_cast<int32_t>(value));
        launch.run({static_cast<size_t>(turned_outputs), static_cast<size_t>(quotient_up(w.places(), places_each)),
                    static_cast<size_t>(images)},
                   {static_cast<size_t>(lanes), 1, 1});
    }
    const Tensor sums =
        parts > 1 ? at::empty({parts, grad_weight.numel()}, grad_weight.options().dtype(in_sums)) : grad_weight;
    {
        Launch launch(device, kernel_of(device, "weight gradient " + key, "weight_gradient", source));
        launch.read(padded).read(turned).written(sums);
        for (const int64_t value : {images, images_each, outputs, w.c, w.y.out, w.x.out, size.rows, size.columns})
            launch.value(static_cast<int32_t>(value));
        launch.run({static_cast<size_t>(quotient_up(all_lines, lines) * lanes), static_cast<size_t>(panels),
                    static_cast<size_t>(parts)},
                   {static_cast<size_t>(lanes), 1, 1});
    }
    if (parts > 1)
        grad_weight.view(-1).copy_(at::sum(sums, at::IntArrayRef{0}));
}

void weight_gradient_depthwise(const Tensor& image, const Tensor& grad_out, const Tensor& grad_weight,
                               const Window& w) {
    const Device& device = opencl_device(image);
    const auto type = image.scalar_type();
    const int64_t groups = grad_out.size(1), images = image.size(0), lanes = lanes_of(device);
    const Tensor padded = padded_copy(image, w, groups);
    const Padded size(w, groups);
    const int64_t lines_max = std::max<int64_t>((lanes == 16 ? registers_of_sums : 12) / w.x.kernel, 1);
    const int64_t lines = quotient_up(w.y.kernel, quotient_up(w.y.kernel, lines_max));
    const std::string text = constants(device, w) + weight_macros(w, lines, 1);
    Launch launch(device, kernel_of(device, "depthwise gradient " + text + short_name(type), "depthwise_gradient", [&] {
                      return compute_type_macros(type) + accessors("G", type) + accessors("O", type) + text +
                             depthwise_text;
                  }));
    launch.read(padded).read(grad_out).written(grad_weight).value(grad_out.stride(0));
    for (const int64_t value : {images, w.y.out, w.x.out, size.rows, size.columns})
        launch.value(static_cast<int32_t>(value));
    launch.run({static_cast<size_t>(quotient_up(w.y.kernel, lines) * lanes), static_cast<size_t>(groups), 1},
               {static_cast<size_t>(lanes), 1, 1});
}

}  // namespace torch_opencl
