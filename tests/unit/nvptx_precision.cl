// Operations that OpenCL does not ask to be correctly rounded.
kernel void k(global float* a, global float4* b) {
    a[0] = sqrt(a[1]);
    a[2] = a[3] / a[4];
    a[5] = rsqrt(a[6]);
    b[0] = b[1] / b[2];
}
