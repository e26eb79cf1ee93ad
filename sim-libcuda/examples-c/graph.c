/* A program for the CUDA driver API that captures two streams into a graph and launches that many times.
 *
 *     cc graph.c -o graph -lcuda
 */
#include "driver.h"

/* c[i] += a[i] * k: the graph adds what two streams have prepared. */
static const char *const PTX =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 a, .param .u64 c, .param .u32 k, .param .u32 n)\n{\n"
    "    .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>;\n"
    "    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
    "    mad.lo.u32 %r3, %r0, %r1, %r2; ld.param.u32 %r4, [n];\n"
    "    setp.ge.u32 %p, %r3, %r4; @%p ret;\n"
    "    mul.wide.u32 %d1, %r3, 4;\n"
    "    ld.param.u64 %d0, [a]; add.u64 %d2, %d0, %d1; ld.global.u32 %r5, [%d2];\n"
    "    ld.param.u64 %d0, [c]; add.u64 %d3, %d0, %d1; ld.global.u32 %r6, [%d3];\n"
    "    ld.param.u32 %r7, [k]; mad.lo.u32 %r6, %r5, %r7, %r6; st.global.u32 [%d3], %r6;\n"
    "    ret;\n}\n";

enum { N = 1000, LAUNCHES = 5 };
static CUfunction add_kernel;

static void add(CUdeviceptr a, CUdeviceptr c, unsigned k, CUstream stream)
{
    unsigned n = N;
    void *params[] = {&a, &c, &k, &n};
    CHECK(cuLaunchKernel(add_kernel, (N + 127) / 128, 1, 1, 128, 1, 1, 0, stream, params, NULL));
}

int main(void)
{
    unsigned host[N];
    char name[128];
    size_t nodes = 0;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUstream first, second;
    CUevent fork, join;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr a, b, sum;

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, PTX));
    CHECK(cuModuleGetFunction(&add_kernel, module, "add"));
    CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    CHECK(cuMemAlloc(&a, sizeof host));
    CHECK(cuMemAlloc(&b, sizeof host));
    CHECK(cuMemAlloc(&sum, sizeof host));
    CHECK(cuMemsetD32Async(sum, 0, N, first));

    CHECK(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuEventRecord(fork, first));
    CHECK(cuStreamWaitEvent(second, fork, 0));
    CHECK(cuMemsetD32Async(a, 2, N, first));
    CHECK(cuMemsetD32Async(b, 5, N, second));
    add(b, b, 1, second); /* 10 */
    CHECK(cuEventRecord(join, second));
    add(a, sum, 3, first);
    CHECK(cuStreamWaitEvent(first, join, 0));
    add(b, sum, 10, first);
    CHECK(cuMemcpyDtoHAsync(host, sum, sizeof host, first));
    CHECK(cuStreamEndCapture(first, &graph));

    CHECK(cuGraphGetNodes(graph, NULL, &nodes));
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    CHECK(cuGraphDestroy(graph));
    for (int i = 0; i < LAUNCHES; i++)
        CHECK(cuGraphLaunch(exec, i % 2 ? second : first));
    CHECK(cuStreamSynchronize(first));
    CHECK(cuStreamSynchronize(second));
    for (int i = 0; i < N; i++) {
        if (host[i] != LAUNCHES * 106) {
            fprintf(stderr, "element %d is %u\n", i, host[i]);
            return 1;
        }
    }
    printf("%d launches of a graph of %zu nodes on %s\n", LAUNCHES, nodes, name);
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuEventDestroy(fork));
    CHECK(cuEventDestroy(join));
    CHECK(cuMemFree(a));
    CHECK(cuMemFree(b));
    CHECK(cuMemFree(sum));
    CHECK(cuStreamDestroy(first));
    CHECK(cuStreamDestroy(second));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return 0;
}
