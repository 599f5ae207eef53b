// Conditions in one another, as those of a decoder or of a search in a tree that is written out: lanes leave at each depth, and all meet at the end. What lanes have
// that went no further must be one value, not one for each depth.
#define STEP(c) if (x > limits[c]) { x = x * 1.01f + weights[c]; steps += c;
#define STEPS_8(c) STEP(c) STEP(c + 1) STEP(c + 2) STEP(c + 3) STEP(c + 4) STEP(c + 5) STEP(c + 6) STEP(c + 7)
#define ENDS_8 }}}}}}}}
kernel void nested_conditions(global const float* in, global const float* limits, global const float* weights, global float* out) {
    const int i = get_global_id(0);
    float x = in[i];
    int steps = 0;
    STEPS_8(0) STEPS_8(8) STEPS_8(16) STEPS_8(24) STEPS_8(32) STEPS_8(40) STEPS_8(48) STEPS_8(56) STEPS_8(64) STEPS_8(72)
    ENDS_8 ENDS_8 ENDS_8 ENDS_8 ENDS_8 ENDS_8 ENDS_8 ENDS_8 ENDS_8 ENDS_8
    out[i] = x + steps;
}
