/* A plain program for the CUDA driver API: loads a module, copies, launches, waits, checks.
 *
 *     cc scale.c -o scale -lcuda
 */
#include "driver.h"

static const char *const PTX =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry scale(.param .u64 data, .param .f32 by, .param .u32 n)\n{\n"
    "    .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %d<3>; .reg .f32 %f<3>;\n"
    "    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
    "    mad.lo.u32 %r3, %r0, %r1, %r2; ld.param.u32 %r4, [n];\n"
    "    setp.ge.u32 %p, %r3, %r4; @%p ret;\n"
    "    ld.param.u64 %d0, [data]; mul.wide.u32 %d1, %r3, 4; add.u64 %d2, %d0, %d1;\n"
    "    ld.global.f32 %f0, [%d2]; ld.param.f32 %f1, [by]; mul.f32 %f2, %f0, %f1; st.global.f32 [%d2], %f2;\n"
    "    ret;\n}\n";

int main(void)
{
    enum { N = 1000 };
    float host[N];
    float by = 2.5f;
    unsigned n = N;
    char name[128];
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction scale;
    CUstream stream;
    CUdeviceptr data;

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, PTX));
    CHECK(cuModuleGetFunction(&scale, module, "scale"));
    CHECK(cuStreamCreate(&stream, 0));
    CHECK(cuMemAlloc(&data, sizeof host));
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    CHECK(cuMemcpyHtoDAsync(data, host, sizeof host, stream));
    void *params[] = {&data, &by, &n};
    CHECK(cuLaunchKernel(scale, (N + 127) / 128, 1, 1, 128, 1, 1, 0, stream, params, NULL));
    CHECK(cuMemcpyDtoHAsync(host, data, sizeof host, stream));
    CHECK(cuStreamSynchronize(stream));
    for (int i = 0; i < N; i++) {
        if (host[i] != (float)i * by) {
            fprintf(stderr, "element %d is %f\n", i, host[i]);
            return 1;
        }
    }
    printf("%d elements scaled by %.1f on %s\n", N, by, name);
    CHECK(cuMemFree(data));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}
