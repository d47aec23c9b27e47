package ingest

import (
	"errors"
	"strings"
	"testing"

	"tideline/shared/analysis/reading"
)

// wordings are texts as other versions and tools write them, with what must be
// read out of them. A fact is compared as its JSON.
var wordings = []struct {
	name, text, kind, verdict string
	facts                     map[string]string
}{
	// Ends
	{
		"the kernel in a container", "[1234567.890456] oom-kill:constraint=CONSTRAINT_MEMCG,task=python,pid=4242,uid=0\n[1234567.890789] Memory cgroup out of memory: Killed process 4242 (python) total-vm:35462212kB, anon-rss:16512344kB, file-rss:70244kB, UID:0\n",
		"process-end", "host_out_of_memory",
		map[string]string{"process_id": "4242", "process": `"python"`, "resident_bytes": "16908640256", "is_limit_of_group": "true"},
	},
	{
		"an older kernel", "kernel: Out of memory: Kill process 77 (tf train) score 912 or sacrifice child\n",
		"process-end", "host_out_of_memory",
		map[string]string{"process_id": "77", "process": `"tf train"`, "resident_bytes": "null", "is_limit_of_group": "false"},
	},
	{"a shell", "Epoch 3/10\nKilled\n", "process-end", "undetermined_no_state", map[string]string{"process_id": "null"}},
	{"a script", "run.sh: line 3:  4242 Killed                  python train.py\n", "process-end", "undetermined_no_state", nil},
	{
		"vLLM", "ERROR 05-12 10:21:33 core.py:390] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n",
		"process-end", "no_room_for_cache",
		map[string]string{"resident_bytes": "null"},
	},
	// A TPU's runtime, and its compiler in other words
	{
		"a buffer", "XlaRuntimeError: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 4.39G. That was not possible. There are 2.30G free.; (0x0x0_HBM0)\n",
		"xla-tpu-oom", "full",
		map[string]string{"requested_text": `"4.39G"`, "free_text": `"2.30G"`, "device": `"0x0x0_HBM0"`, "memory_space": `"hbm"`, "truncated": "false"},
	},
	{
		"a buffer, broken in two", "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 5.94M.\nThat was not possible. There are 4.20M free.\n",
		"xla-tpu-oom", "full",
		map[string]string{"requested_text": `"5.94M"`, "free_text": `"4.20M"`},
	},
	{
		"without a code", "2020-10-22 02:48:58 10.128.0.33 [3]   (1) Resource exhausted: Attempting to allocate 180.59M. That was not possible. There are 142.58M free.; (0x3x0_HBM1)\n",
		"xla-tpu-oom", "full",
		map[string]string{"requested_text": `"180.59M"`, "device": `"0x3x0_HBM1"`},
	},
	{
		"in pieces", "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 1.00G. That was not possible. There are 1.20G free. The largest contiguous region of free memory is 640.00M due to fragmentation.; (0x0x0_HBM0)\n",
		"xla-tpu-oom", "fragmented",
		map[string]string{"largest_free_text": `"640.00M"`},
	},
	{
		"its beginning alone", "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 1.00G.\n",
		"xla-tpu-oom", "undetermined_truncated",
		map[string]string{"requested_text": `"1.00G"`, "free_text": "null", "truncated": "true"},
	},
	{
		"loading a program", "RESOURCE_EXHAUSTED: Error loading program 'jit_train_step':\nAttempting to reserve 51.43G at the bottom of memory. That was not possible. There are 46.61G free, 0B reserved, and 46.61G reservable.\n",
		"xla-tpu-oom", "full",
		map[string]string{"executable": `"jit_train_step"`, "requested_text": `"51.43G"`, "free_text": `"46.61G"`, "reservable_text": `"46.61G"`},
	},
	{
		"loading a program, with tables", `RuntimeError: Resource exhausted: From /job:tpu_worker/replica:0/task:0:
Attempting to reserve 3.95G at the bottom of memory. That was not possible. There are 1.92G free, 0B reserved, and 1.92G reservable.;
HBM capacity 8.00G:
       Top-of-Memory reserved:  529.00M (     554,696,704 bytes)
          Currently allocated:    6.08G (   6,532,939,776 bytes)
          Program requirement:    3.95G (   4,237,689,856 bytes)
                               ------------
      Available after request:   -2.55G (  -2,735,391,744 bytes)
; attempting reservation for program memory

Total hbm usage >= 10.94G:
    reserved(Infeed/Outfeed/Continuations) 529.00M
    heap allocations (without fragmentation)   6.08G
    program                    4.34G

Heap allocator status:
    Max free chunk             1.92G (0.0% fragmentation)

Persistent allocations include some or all of:
    arguments                478.07M (89.4% utilization)
    output                     5.06G (71.6% utilization) [may share some memory with arguments]

Program hbm requirement 4.34G:
    reserved           4.0K
    global             4.0K
    scoped           17.43M
    HLO temp          3.93G (97.4% utilization: Unpadded (3.81G) Padded (3.92G), 0.4% fragmentation (14.68M))
    overlays        403.71M
`,
		"xla-tpu-oom", "full",
		map[string]string{
			"requested_bytes": "4237689856", "in_use_bytes": "6532939776", "capacity_text": `"8.00G"`, "total_usage_text": `"10.94G"`,
			"reserved_text": `"529.00M"`, "heap_allocations_text": `"6.08G"`, "arguments_text": `"478.07M"`, "program_text": `"4.34G"`,
			"program_overlays_text": `"403.71M"`, "temp_utilization_percent": "97.4", "temp_fragmentation_percent": "0.4", "largest_free_text": `"1.92G"`,
		},
	},
	{
		"two kinds of cores", "RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: 34.82G, SparseCore Hbm usage 174.10G, exceeding available bytes: 95.74G\n",
		"xla-tpu-oom", "program_exceeds_device",
		map[string]string{"tensor_core_text": `"34.82G"`, "sparse_core_text": `"174.10G"`, "used_text": `"208.92G"`, "capacity_text": `"95.74G"`},
	},
	{
		"one instruction", "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory space vmem while allocating on stack for %gmm.1 = f32[16384,512]{1,0:T(8,128)} custom-call(%a)\nScoped allocation with size 18.00M and limit 16.00M exceeded scoped vmem limit by 2.00M.\n",
		"xla-tpu-oom", "limit_too_low",
		map[string]string{"memory_space": `"vmem"`, "used_text": `"18.00M"`, "capacity_text": `"16.00M"`, "exceeded_text": `"2.00M"`, "instruction": `"%gmm.1"`},
	},
	{
		"one instruction, without its figures", "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on stack for %k = bf16[2048,4096]{1,0:T(8,128)(2,1)} custom-call(...)\n",
		"xla-tpu-oom", "undetermined_truncated",
		map[string]string{"memory_space": `"vmem"`, "truncated": "true"},
	},
	{
		"one allocation above all", "RESOURCE_EXHAUSTED: Allocation (size=38654705664) would exceed memory (size=34359738368) :: #allocation7 [shape = 'u8[38654705664]{0}', space=hbm]\n",
		"xla-tpu-oom", "request_exceeds_device",
		map[string]string{"used_text": `"38654705664"`, "capacity_text": `"34359738368"`, "truncated": "false"},
	},
	{
		"the compiler's sentence broken in pieces", "XLA:TPU compile permanent error. Ran out of memory in memory\nspace hbm. Used 54.36G of 31.25G hbm.\nExceeded hbm capacity by 23.11G.\n\nTotal hbm usage >= 59.76G:\n    reserved 260.00M\n",
		"xla-tpu-oom", "program_exceeds_device",
		map[string]string{"used_text": `"54.36G"`, "capacity_text": `"31.25G"`, "exceeded_text": `"23.11G"`, "total_usage_text": `"59.76G"`, "reserved_text": `"260.00M"`},
	},
	{
		"the end of the compiler's sentence", "Used 41.76G of 31.25G hbm. Exceeded hbm capacity by 10.51G.\n",
		"xla-tpu-oom", "program_exceeds_device",
		map[string]string{"memory_space": `"hbm"`, "used_text": `"41.76G"`},
	},
	{
		"all on one line", "XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 49.34G of 32.00G hbm. Exceeded hbm capacity by 17.34G. Total hbm usage >= 49.34G: reserved 3.12M program unknown size arguments 49.34G Output size 0B; shares 0B with arguments. Program hbm requirement 1.50G: global 1.14M scoped 4.56M HLO temp 1.49G (99.0% utilization: Unpadded (1.40G) Padded (1.41G), 0.3% fragmentation (2.00M)) Largest program allocations in hbm: 1. Size: 1.00G Shape: f32[1024,1024,256]{2,1,0:T(8,128)} Unpadded size: 1.00G XLA label: fusion.1 Allocation type: HLO temp ======\n",
		"xla-tpu-oom", "program_exceeds_device",
		map[string]string{
			"reserved_text": `"3.12M"`, "arguments_text": `"49.34G"`, "program_text": `"1.50G"`, "program_global_text": `"1.14M"`, "temp_text": `"1.49G"`,
			"temp_fragmentation_text": `"2.00M"`,
			"allocations":             `[{"rank":1,"size_bytes":1073741824,"unpadded_bytes":1073741824,"padding_bytes":0,"expansion":1,"shape":"f32[1024,1024,256]","tile":"T(8,128)","allocation_type":"HLO temp"}]`,
		},
	},
	{
		"its tables without its sentence", "    arguments 0B\nProgram hbm requirement 9.08G:\n    global           420.0K\n    HLO temp          9.08G (95.4% utilization: Unpadded (8.65G) Padded (9.06G),\n0.0% fragmentation (0B))\n",
		"xla-tpu-oom", "undetermined_truncated",
		map[string]string{"memory_space": `"hbm"`, "program_text": `"9.08G"`, "temp_fragmentation_percent": "0", "used_text": "null"},
	},
	{
		"a warning of the compiler alone", "W0000 00:00:1756998431.440298    5182 hlo_rematerialization.cc:3183] Can't reduce memory use below 10.64GiB (11428802214 bytes) by rematerialization; only reduced to 71.27GiB (76523901244 bytes), down from 73.51GiB (78931543988 bytes) originally\n",
		"xla-oom", "undetermined_no_state",
		map[string]string{"remat_target_bytes": "11428802214", "remat_reduced_to_bytes": "76523901244", "remat_originally_text": `"73.51GiB"`},
	},
	{
		"given up early", "Compilation failure: Aborting compilation early because it's unlikely to have enough memory. Requires 3.47E, has 14.49G available.\n",
		"xla-tpu-oom", "program_exceeds_device",
		map[string]string{"used_text": `"3.47E"`, "capacity_text": `"14.49G"`, "truncated": "false"},
	},
	{
		"scratch memory, without figures", "INFO:tensorflow:Error recorded from training_loop: Compilation failure: Ran out of memory in memory space vmem. It should not be possible to run out of vmem - please file a bug against XLA.\n\nLargest program allocations in vmem:\n\n  XLA label: register allocator spill slots\n  Allocation type: scoped\n",
		"xla-tpu-oom", "program_exceeds_device",
		map[string]string{"memory_space": `"vmem"`, "used_text": "null", "truncated": "false"},
	},
	{
		"the scalar unit's memory", "RuntimeError: Bad StatusOr access: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space smem. Used 1.00M of 1.00M smem. Exceeded smem capacity by 1.7K.\n",
		"xla-tpu-oom", "program_exceeds_device",
		map[string]string{"memory_space": `"smem"`, "exceeded_text": `"1.7K"`},
	},
	{
		"cut behind a label", "Ran out of memory in memory space hbm. Used 41.74G of 16.00G hbm. Exceeded hbm capacity by 25.74G.\n\nTotal hbm usage >=",
		"xla-tpu-oom", "program_exceeds_device",
		map[string]string{"total_usage_text": "null"},
	},
	{
		"temporaries that are mostly padding, without the list", "Ran out of memory in memory space hbm. Used 41.74G of 16.00G hbm. Exceeded hbm capacity by 25.74G.\n\nProgram hbm requirement 41.22G:\n    HLO temp 41.19G (24.2% utilization: Unpadded (9.90G) Padded (40.90G), 0.7% fragmentation (293.84M))\n",
		"xla-tpu-oom", "padding_expansion",
		map[string]string{"used_without_this_padding_text": `"10.74G"`, "fits_without_this_padding": "true"},
	},
	{
		"an all but empty pool", "2025-05-13 09:18:45.074199: W external/xla/xla/hlo/transforms/simplifiers/hlo_rematerialization.cc:3021] Can't reduce memory use below 67.69GiB (72678595712 bytes) by rematerialization; only reduced to 95.40GiB (102432320060 bytes), down from 95.40GiB (102432320060 bytes) originally\n2025-05-13 09:18:55.172253: W external/xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to allocate 95.40GiB (rounded to 102432004352)requested by op \n2025-05-13 09:18:55.172300: W external/xla/xla/tsl/framework/bfc_allocator.cc:512] *___________________________________________________________________________________________________\nE0513 09:18:55.172311 1808266 pjrt_stream_executor_client.cc:2908] Execution of replica 0 failed: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 102432004120 bytes.\n",
		"xla-oom", "limit_too_low",
		map[string]string{"requested_bytes": "102432004120", "free_cells_in_bar": "99", "remat_target_bytes": "72678595712"},
	},
	{
		"the host's client", "RuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 137438953472 bytes.\n",
		"xla-oom", "undetermined_no_state",
		map[string]string{"requested_bytes": "137438953472"},
	},
	{
		"a constant", "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Failed to allocate 33554432 bytes for new constant\n",
		"xla-oom", "undetermined_no_state",
		map[string]string{"requested_bytes": "33554432"},
	},
	// Parts of dumps
	{
		"the host's memory refused", "2022-06-16 02:36:14.576914: E tensorflow/stream_executor/cuda/cuda_driver.cc:893] failed to alloc 966367744 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n2022-06-16 02:36:14.576962: W ./tensorflow/core/common_runtime/gpu/gpu_host_allocator.h:44] could not allocate pinned host memory of size: 966367744\n2022-06-16 02:36:14.671003: E tensorflow/stream_executor/cuda/cuda_driver.cc:893] failed to alloc 869731072 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n2022-06-16 02:36:14.671047: W ./tensorflow/core/common_runtime/gpu/gpu_host_allocator.h:44] could not allocate pinned host memory of size: 869731072\n",
		"tf-bfc-oom", "host_pinned_limit",
		map[string]string{"host_pinned_refusals": "[966367744,869731072]"},
	},
	{
		"the last bins", "2022-05-04 18:02:49.007520: I tensorflow/core/common_runtime/bfc_allocator.cc:1017] Bin (134217728):    Total Chunks: 0, Chunks in use: 0. 0B allocated for chunks. 0B in use in bin. 0B client-requested in use in bin.\n2022-05-04 18:02:49.008016: I tensorflow/core/common_runtime/bfc_allocator.cc:1017] Bin (268435456):    Total Chunks: 1, Chunks in use: 0. 4.39GiB allocated for chunks. 0B in use in bin. 0B client-requested in use in bin.\n2022-05-04 18:02:49.008477: I tensorflow/core/common_runtime/bfc_allocator.cc:1033] Bin for 10.44GiB was 256.00MiB, Chunk State:\n",
		"tf-bfc-oom", "undetermined_truncated",
		map[string]string{"largest_free_chunk_text": `"4.39GiB"`, "certain": `["no free chunk can hold the request"]`, "format_variant": `"bin lines"`},
	},
	{
		"the first bins", "I tensorflow/core/common_runtime/bfc_allocator.cc:1017] Bin (256):    Total Chunks: 1, Chunks in use: 0. 256B allocated for chunks. 0B in use in bin. 0B client-requested in use in bin.\n",
		"tf-bfc-oom", "undetermined_truncated",
		map[string]string{"largest_free_chunk_text": "null"},
	},
	{
		"a refused region of an unknown limit", "2025-07-31 20:22:43.038900: I tensorflow/stream_executor/cuda/cuda_driver.cc:763] failed to allocate 663.34M (695559424 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n2025-07-31 20:22:43.038918: W tensorflow/core/common_runtime/bfc_allocator.cc:434] Allocator (GPU_0_bfc) ran out of memory trying to allocate 512.00MiB (rounded to 536870912)\nCurrent allocation summary follows.\n",
		"tf-bfc-oom", "other_process",
		map[string]string{"driver_refusals": "[695559424]"},
	},
	{
		"the host's pool without its name", "I tensorflow/core/common_runtime/bfc_allocator.cc:702] Stats:\nLimit:                 68719476736\nInUse:                 68719476736\nMaxInUse:              68719476736\nNumAllocs:                      32\nMaxAllocSize:           6359738368\n",
		"tf-bfc-oom", "host_pinned_limit",
		map[string]string{"limit_bytes": "68719476736"},
	},
	{
		"the end of a summary", "I bfc_allocator.cc:696] 1 Chunks of size 200000000 totalling 190.73MiB\nI bfc_allocator.cc:700] Sum Total of in-use chunks: 900.00MiB\n",
		"tf-bfc-oom", "undetermined_truncated",
		map[string]string{"dominant_chunk_size": "null", "dominant_share": "null", "largest_single_in_use_bytes": "200000000"},
	},
	{
		"the end of a pool that has grown", "Limit:                  1843986432\nInUse:                   917285632\nMaxInUse:               1420726272\nNumAllocs:                     455\nMaxAllocSize:            562273024\n\n2025-07-31 20:22:44.000000: W tensorflow/core/common_runtime/bfc_allocator.cc:446] ***********************************************x*******************************________________*****\nResourceExhaustedError: OOM when allocating tensor with shape[4,2048,128,128] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]\n",
		"tf-bfc-oom", "undetermined_truncated",
		map[string]string{"free_total_bytes": "null", "in_use_bytes": "917285632"},
	},
	{
		"a quoted error", "> `OOM when allocating tensor with shape[209715200,30] and type double`.\n",
		"tf-bfc-oom", "undetermined_no_state",
		map[string]string{"dtype": `"double"`, "dtype_bytes": "8", "requested_bytes": "50331648000"},
	},
	{
		"the copy of an argument", "I bfc_allocator.cc:1114] Stats: \nLimit:                     40231108608\nInUse:                     31785630720\nMaxInUse:                  37595815424\nNumAllocs:                    21974606\nMaxAllocSize:              13200000000\n\ntensorflow.python.framework.errors_impl.InternalError: Failed copying input tensor from /job:localhost/replica:0/task:0/device:CPU:0 to /job:localhost/replica:0/task:0/device:GPU:0 in order to run _EagerConst: Dst tensor is not initialized.\n",
		"tf-bfc-oom", "undetermined_truncated",
		map[string]string{"requested_by_op": `"_EagerConst"`, "other_faces": `["Dst tensor is not initialized"]`},
	},
	{
		"the driver's pool", "2022-06-16 02:36:14.576914: E tensorflow/core/common_runtime/gpu/gpu_cudamallocasync_allocator.cc:288] gpu_async_0 cuMemAllocAsync failed to allocate 2147483648 bytes: CUDA error: out of memory (CUDA_ERROR_OUT_OF_MEMORY)\n Reported by CUDA: Free memory/Total memory: 1234567168/8361279488\n2022-06-16 02:36:14.576914: E tensorflow/core/common_runtime/gpu/gpu_cudamallocasync_allocator.cc:293] Stats: Limit:                      6254686208\nInUse:                      5369750000\nMaxInUse:                   6200000000\nNumAllocs:                         123\nMaxAllocSize:               1073741824\n\n2022-06-16 02:36:14.576914: E tensorflow/core/common_runtime/gpu/gpu_cudamallocasync_allocator.cc:56] Histogram of current allocation: (allocation_size_in_bytes, nb_allocation_of_that_sizes), ...;\n2022-06-16 02:36:14.576914: E tensorflow/core/common_runtime/gpu/gpu_cudamallocasync_allocator.cc:59] 1041280, 1\n2022-06-16 02:36:14.576914: E tensorflow/core/common_runtime/gpu/gpu_cudamallocasync_allocator.cc:59] 1073741744, 5\n2022-06-16 02:36:14.576914: E tensorflow/core/common_runtime/gpu/gpu_cudamallocasync_allocator.cc:90] CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: 6408896512\n2022-06-16 02:36:14.576914: E tensorflow/core/common_runtime/gpu/gpu_cudamallocasync_allocator.cc:91] CU_MEMPOOL_ATTR_USED_MEM_CURRENT: 5369750000\n",
		"tf-bfc-oom", "fragmented",
		map[string]string{
			"limit_bytes": "6254686208", "in_use_bytes": "5369750000", "num_allocs": "123", "pool_bytes": "6408896512", "driver_free_bytes": "1234567168",
			"dominant_chunk_size": "1073741744", "dominant_chunk_count": "5", "sum_of_listed_chunks": "5369750000",
		},
	},
	// Figures of a loop
	{
		"a detector's table", "     Epoch   gpu_mem       box       obj       cls     total   targets  img_size\n     0/299     5.20G   0.08   0.02   0.01   0.1   31   640:  50%|#####     | 50/100 [00:10<00:00]\n     0/299     5.30G   0.08   0.02   0.01   0.1   31   640: 100%|##########| 100/100 [00:10<00:00]\n               Class     Images     Targets           P           R      mAP@.5  mAP@.5:.95: 100%\n     Epoch   gpu_mem       box       obj       cls     total   targets  img_size\n     1/299     5.30G   0.08   0.02   0.01   0.1   31   640:  50%|#####     | 50/100 [00:10<00:00]\n     1/299     5.40G   0.08   0.02   0.01   0.1   31   640: 100%|##########| 100/100 [00:10<00:00]\n               Class     Images     Targets           P           R      mAP@.5  mAP@.5:.95: 100%\n     Epoch   gpu_mem       box       obj       cls     total   targets  img_size\n     2/299     5.40G   0.08   0.02   0.01   0.1   31   640:  50%|#####     | 50/100 [00:10<00:00]\n     2/299     5.50G   0.08   0.02   0.01   0.1   31   640: 100%|##########| 100/100 [00:10<00:00]\n               Class     Images     Targets           P           R      mAP@.5  mAP@.5:.95: 100%\n     Epoch   gpu_mem       box       obj       cls     total   targets  img_size\n     3/299     5.50G   0.08   0.02   0.01   0.1   31   640:  50%|#####     | 50/100 [00:10<00:00]\n     3/299     5.60G   0.08   0.02   0.01   0.1   31   640: 100%|##########| 100/100 [00:10<00:00]\n               Class     Images     Targets           P           R      mAP@.5  mAP@.5:.95: 100%\n",
		"step-memory-log", "leak_growth_per_step",
		map[string]string{"label": `"gpu_mem"`, "first": "5.3", "last": "5.6", "samples": "4", "slope_gb_per_step": "0.1", "extrapolated_at_step_299_gb": "35"},
	},
	{
		"a unit for the line", "(after 10 iterations) memory (MB) | allocated: 6784.5 | max allocated: 8570.25\n(after 20 iterations) memory (MB) | allocated: 6794.5 | max allocated: 8580.25\n(after 30 iterations) memory (MB) | allocated: 6804.5 | max allocated: 8590.25\n(after 40 iterations) memory (MB) | allocated: 6814.5 | max allocated: 8600.25\n",
		"step-memory-log", "leak_growth_per_step",
		map[string]string{"label": `"allocated"`, "unit": `"MB as printed"`, "slope_mb_per_step": "10"},
	},
	{
		"a unit behind the label", "step 1 {'memory/max_allocated (GiB)': 20.5}\nstep 2 {'memory/max_allocated (GiB)': 21.5}\nstep 3 {'memory/max_allocated (GiB)': 22.5}\n",
		"step-memory-log", "leak_growth_per_step",
		map[string]string{"label": `"max_allocated"`, "unit": `"GiB as printed"`, "slope_gib_per_step": "1"},
	},
	{
		"JAX's statistics", "step 0: {'num_allocs': 7, 'bytes_in_use': 123456789, 'peak_bytes_in_use': 200000000, 'bytes_limit': 12884901888}\nstep 1: {'num_allocs': 9, 'bytes_in_use': 128456789, 'peak_bytes_in_use': 205000000, 'bytes_limit': 12884901888}\nstep 2: {'num_allocs': 9, 'bytes_in_use': 133456789, 'peak_bytes_in_use': 210000000, 'bytes_limit': 12884901888}\n",
		"step-memory-log", "leak_growth_per_step",
		map[string]string{"device_current_first": "123456789", "device_peak_last": "210000000", "slope_bytes_per_step": "5000000"},
	},
	{
		"the device and the host", "see_memory_usage] MA 1.2 GB         Max_MA 4.5 GB         CA 5.0 GB         Max_CA 6 GB\nsee_memory_usage] CPU Virtual Memory:  used = 100.5 GB, percent = 20.1%\nsee_memory_usage] MA 1.3 GB         Max_MA 4.6 GB         CA 5.0 GB         Max_CA 6 GB\nsee_memory_usage] CPU Virtual Memory:  used = 101.5 GB, percent = 20.1%\nsee_memory_usage] MA 1.4 GB         Max_MA 4.7 GB         CA 5.0 GB         Max_CA 6 GB\nsee_memory_usage] CPU Virtual Memory:  used = 102.5 GB, percent = 20.1%\n",
		"step-memory-log", "leak_growth_per_step",
		map[string]string{"label": `"ma"`, "device_current_first": "1.2", "device_peak_last": "4.7", "slope_gb_per_step": "0.1"},
	},
	{
		"twice a step", "Iteration 19/500\nstart Current memory usage: 798.17 MB\nend Current memory usage: 824.98 MB\nIteration 20/500\nstart Current memory usage: 824.98 MB\nend Current memory usage: 850.34 MB\nIteration 21/500\nstart Current memory usage: 850.42 MB\nend Current memory usage: 876.81 MB\nIteration 22/500\nstart Current memory usage: 876.81 MB\nend Current memory usage: 904.02 MB\n",
		"step-memory-log", "leak_growth_per_step",
		map[string]string{"steps_counted": "true", "slope_mb_per_step": "26.2475", "samples": "8"},
	},
	{
		"a little of much, but in each step", "it [10/500] max mem: 14655\nit [20/500] max mem: 14692\nit [30/500] max mem: 14730\nit [40/500] max mem: 14767\n",
		"step-memory-log", "leak_growth_per_step",
		map[string]string{"slope_mib_per_step": "3.74"},
	},
	// Libraries
	{
		"a copy alone", "tensorflow.python.framework.errors_impl.InternalError: Dst tensor is not initialized.\n",
		"library-message", "undetermined_no_state",
		map[string]string{"left_bytes": "null", "pool_bytes": "null", "dump_line": "null"},
	},
	{
		"a handle beside a pool", "2020-01-14 21:14:55.360139: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1555] Found device 0 with properties:\npciBusID: 0000:01:00.0 name: GeForce GTX 1650 computeCapability: 7.5\ncoreClock: 1.245GHz coreCount: 16 deviceMemorySize: 4.00GiB deviceMemoryBandwidth: 104.34GiB/s\n2020-01-14 21:14:57.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1241] Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 2919 MB memory) -> physical GPU (device: 0, name: GeForce GTX 1650, pci bus id: 0000:01:00.0, compute capability: 7.5)\n2020-11-24 17:10:41.561920: E tensorflow/stream_executor/cuda/cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED\n2020-11-24 17:10:41.600418: E tensorflow/stream_executor/cuda/cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED\ntensorflow.python.framework.errors_impl.InternalError: Blas GEMM launch failed : a.shape=(32, 784), b.shape=(784, 128), m=32, n=128, k=784 [Op:MatMul]\n",
		"library-message", "no_room_for_library",
		map[string]string{"left_bytes": "1234173952", "promised_bytes": "3060793344", "start_total_text": `"4.00GiB"`, "start_free_text": "null", "card": `"GeForce GTX 1650"`},
	},
	{
		"a full device", "I tensorflow/core/common_runtime/gpu/gpu_device.cc:885] Found device 0 with properties: \nname: TITAN X (Pascal)\nmajor: 6 minor: 1 memoryClockRate (GHz) 1.531\npciBusID 0000:04:00.0\nTotal memory: 11.90GiB\nFree memory: 381.44MiB\ntensorflow.python.framework.errors_impl.InternalError: Dst tensor is not initialized.\n\t [[Node: zeros_12 = Const[dtype=DT_FLOAT]()]]\n",
		"library-message", "device_already_full",
		map[string]string{"start_free_text": `"381.44MiB"`},
	},
	{
		"versions that do not fit", "Loaded runtime CuDNN library: 7.1.2 but source was compiled with: 7.6.0.\nFailed to get convolution algorithm. This is probably because cuDNN failed to initialize",
		"library-message", "not_a_memory_problem",
		map[string]string{"library_loaded": `"7.1.2"`, "library_compiled": `"7.6.0"`},
	},
	{
		"a small pool and a handle", "2021-03-18 20:49:00.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1418] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 52 MB memory:  -> device: 0, name: Tesla T4, pci bus id: 0000:00:04.0, compute capability: 7.5\n" + "Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR\n",
		"library-message", "limit_too_low",
		map[string]string{"promised_bytes": "54525952"},
	},
	// TensorFlow's start
	{
		"52 MB", "2021-03-18 20:49:00.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1418] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 52 MB memory:  -> device: 0, name: Tesla T4, pci bus id: 0000:00:04.0, compute capability: 7.5\n",
		"tf-device-start", "limit_too_low", nil,
	},
	{
		"52 MB of a full card", "Found device 0 with properties:\ntotalMemory: 14.76GiB freeMemory: 363.69MiB\nCreated TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 52 MB memory)",
		"tf-device-start", "other_process", nil,
	},
	{
		"a limit on an empty card", "Found device 0 with properties:\ntotalMemory: 14.76GiB freeMemory: 14.40GiB\nCreated TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 1024 MB memory)",
		"tf-device-start", "limit_too_low", nil,
	},
	{
		"a whole card", "Created device /job:localhost/replica:0/task:0/device:GPU:1 with 13480 MB memory:  -> device: 1, name: Tesla T4, pci bus id: 0000:00:04.0",
		"tf-device-start", "parse_only", nil,
	},
	// TensorFlow's placement
	{
		"an op between", "Device mapping:\n/job:localhost/replica:0/task:0/device:GPU:0 -> device: 0, name: Tesla K80, pci bus id: 0000:00:1e.0, compute capability: 3.7\nembed/table: (VariableV2): /job:localhost/replica:0/task:0/device:GPU:0\nembed/Gather: (GatherV2): /job:localhost/replica:0/task:0/device:GPU:0\nembed/Unique: (Unique): /job:localhost/replica:0/task:0/device:CPU:0\ndense/MatMul: (MatMul): /job:localhost/replica:0/task:0/device:GPU:0\nsave/SaveV2: (SaveV2): /job:localhost/replica:0/task:0/device:CPU:0\n",
		"tf-placement", "ops_on_cpu",
		map[string]string{"gpu_ops": "3", "other_ops": "2", "ops_elsewhere_more": "0"},
	},
	{
		"no GPU", "Executing op MatMul in device /job:localhost/replica:0/task:0/device:CPU:0\nExecuting op Add in device /job:localhost/replica:0/task:0/device:CPU:0\n",
		"tf-placement", "all_on_cpu",
		map[string]string{"gpu_ops": "0", "other_ops": "2"},
	},
	{
		"only what the host does", "Executing op MatMul in device /job:localhost/replica:0/task:0/device:GPU:0\nExecuting op DecodeJpeg in device /job:localhost/replica:0/task:0/device:CPU:0\n",
		"tf-placement", "ops_on_gpu", nil,
	},
	{
		"refused", "Cannot assign a device for operation 'aux/Adam_1': Could not satisfy explicit device specification '/device:GPU:0' because no supported kernel for GPU devices is available.\nColocation Debug Info:\nColocation group had the following types and devices: \nSwitch: GPU CPU \nL2Loss: CPU \n",
		"tf-placement", "placement_refused",
		map[string]string{"types_without_gpu_kernel": `["L2Loss"]`, "refused": `[{"op":"aux/Adam_1","wanted":"GPU:0","line":1,"no_kernel_for":"GPU","no_device":false,"group_on":null}]`},
	},
	// PyTorch
	{
		"0.4, cached",
		"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.92 GiB total capacity; 10.33 GiB already allocated; 5.56 MiB free; 47.50 MiB cached)",
		"pytorch-oom-message", "fragmented",
		map[string]string{"reserved_unallocated_mib": "47.5", "requested_mib": "20", "capacity_gib": "10.92", "free_mib": "5.56", "allocated_gib": "10.33"},
	},
	{
		"1.4, full",
		"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 15.90 GiB total capacity; 14.40 GiB already allocated; 601.88 MiB free; 14.52 GiB reserved in total by PyTorch)",
		"pytorch-oom-message", "full",
		map[string]string{"device": "1", "reserved_unallocated_gib": "0.12", "outside_gib": "0.79", "truncated": "false"},
	},
	{
		"a web page's copy, fragmented",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB (GPU 0; 23.69 GiB total capacity; 12.00 GiB already allocated; 1.50 GiB free; 21.50 GiB reserved in total by PyTorch) If reserved memory is &gt;&gt; allocated memory try setting max_split_size_mb to avoid fragmentation.",
		"pytorch-oom-message", "fragmented",
		map[string]string{"reserved_unallocated_gib": "9.5", "shortfall_gib": "2.5"},
	},
	{
		"malloc tail",
		"RuntimeError: CUDA out of memory. Tried to allocate 14.00 MiB (GPU 0; 6.00 GiB total capacity; 4.47 GiB already allocated; 4.93 MiB free; 4.49 GiB reserved in total by PyTorch) (malloc at ..\\c10\\cuda\\CUDACachingAllocator.cpp:289)",
		"pytorch-oom-message", "other_process",
		map[string]string{"non_torch_gib": "1.51", "requested_gib": "0.01"},
	},
	{
		"a fraction of the device",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 18.00 GiB is free. 5.00 GiB allowed; Of the allocated memory 4.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.",
		"pytorch-oom-message", "limit_too_low",
		map[string]string{"user_limit_gib": "5"},
	},
	{
		"hidden in a container",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 44.40 GiB of which 512.00 MiB is free. Including non-PyTorch memory, this process has 20.00 GiB memory in use. Of the allocated memory 19.00 GiB is allocated by PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated.",
		"pytorch-oom-message", "other_process",
		map[string]string{"other_processes_gib": "null", "this_process_gib": "20"},
	},
	{
		"this program, named by its number outside of the container",
		container,
		"pytorch-oom-message", "full",
		map[string]string{"this_process_id": "3021", "this_process_gib": "7.8", "other_process_ids": "null", "other_processes_total_gib": "null"},
	},
	{
		"this program and another, in a container",
		strings.Replace(strings.Replace(container, "3021 has 7.80 GiB", "3021 has 3.80 GiB", 1), "memory in use. Of the allocated memory 7.20", "memory in use. Process 44 has 4.00 GiB memory in use. Of the allocated memory 3.20", 1),
		"pytorch-oom-message", "other_process",
		map[string]string{"this_process_id": "3021", "other_process_ids": "[44]", "other_processes_total_gib": "4"},
	},
	{
		"another process as large as this one, and room for both",
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 15.00 GiB of which 1.00 GiB is free. Process 3021 has 7.00 GiB memory in use. Of the allocated memory 6.40 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.",
		"pytorch-oom-message", "other_process",
		map[string]string{"this_process_id": "null", "other_process_ids": "[3021]"},
	},
	{
		"nearly full, the rest in pieces",
		strings.Replace(container, "Process 3021 has", "Including non-PyTorch memory, this process has", 1),
		"pytorch-oom-message", "full",
		map[string]string{"this_process_id": "null"},
	},
	{
		"HIP, wrapped within words",
		"[rank0]: torch.OutOfMemoryError: HIP out of memory. Tried to allo\n[rank0]: cate 8.00 GiB. GPU 3 has a total capacity of 63.9\n[rank0]: 8 GiB of which 2.00 GiB is free. Of the allocated memory 61.00 Gi\n[rank0]: B is allocated by PyTorch, and 200.00 MiB is reserved by PyTorch but unallo\n[rank0]: cated.\n",
		"pytorch-oom-message", "full",
		map[string]string{"device": "3", "backend": `"HIP"`, "capacity_gib": "63.98", "allocated_gib": "61"},
	},
	{
		"a collector's JSON",
		`{"time":"2025-01-01T00:00:00Z","msg":"Traceback (most recent call last):\n  File \"a.py\", line 3\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 900.00 GiB. GPU 0 has a total capacity of 79.19 GiB of which 70.00 GiB is free. Of the allocated memory 1.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n"}`,
		"pytorch-oom-message", "request_exceeds_device",
		map[string]string{"requested_gib": "900"},
	},
	{
		"the request alone", "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
		"pytorch-oom-message", "undetermined_no_state",
		map[string]string{"requested_gib": "2", "capacity_gib": "null"},
	},
	{
		"cut in the middle", "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.90 GiB total capacity; 14.4",
		"pytorch-oom-message", "undetermined_truncated",
		map[string]string{"capacity_gib": "15.9", "allocated_gib": "null", "truncated": "true"},
	},
	{
		"more than an exabyte", "RuntimeError: CUDA out of memory. Tried to allocate more than 1EB memory.",
		"pytorch-oom-message", "not_a_memory_problem",
		map[string]string{"requested_gib": "null"},
	},
	{
		"Apple",
		"RuntimeError: MPS backend out of memory (MPS allocated: 8.80 GB, other allocations: 384.00 KB, max allowed: 9.07 GB). Tried to allocate 500.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0",
		"pytorch-oom-message", "full",
		map[string]string{"allocated_gib": "8.8", "requested_mib": "500", "user_limit_gib": "9.07"},
	},
	{
		"async backend with a limit",
		"Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 9.00 GiB\nRequested               : 2.00 GiB\nDevice limit            : 79.35 GiB\nFree (according to CUDA): 60.00 GiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 10.00 GiB\n",
		"pytorch-oom-message", "limit_too_low",
		map[string]string{"user_limit_is_none": "false", "device": "0"},
	},
	{
		"a table of a full card",
		strings.ReplaceAll(table, "12420", "1100"), "pytorch-memory-summary", "full",
		map[string]string{"allocated_mib": "1062", "reserved_unallocated_mib": "38"},
	},
	{
		"a table without a failure",
		strings.ReplaceAll(strings.ReplaceAll(table, "OOMs: 1", "OOMs: 0"), "retries: 1", "retries: 0"), "pytorch-memory-summary", "parse_only",
		map[string]string{"ooms": "0"},
	},
	// The driver alone
	{
		"refused on a shared card",
		"2019-01-01 10:00:00.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1432] Found device 0 with properties: \nname: GeForce GTX 1080 major: 6 minor: 1 memoryClockRate(GHz): 1.7335\npciBusID: 0000:01:00.0\ntotalMemory: 7.92GiB freeMemory: 7.80GiB\n2019-01-01 10:00:01.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1115] Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 7527 MB memory) -> physical GPU\n2019-01-01 10:00:02.000000: E tensorflow/stream_executor/cuda/cuda_driver.cc:806] failed to allocate 7.35G (7892882432 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n2019-01-01 10:00:02.000001: E tensorflow/stream_executor/cuda/cuda_driver.cc:806] failed to allocate 6.62G (7103594496 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n",
		"tf-bfc-oom", "device_refused_shared_card",
		map[string]string{"driver_refusals": "[7892882432,7103594496]", "device_free_text": `"7.80GiB"`, "promised_bytes": "7892631552"},
	},
	{
		"no room for a context",
		"2020-01-01 10:00:02.000000: E tensorflow/core/common_runtime/session.cc:79] Failed to create session: Internal: failed initializing StreamExecutor for CUDA device ordinal 0: Internal: failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory; total memory reported: 11996954624\n",
		"tf-bfc-oom", "device_already_full",
		map[string]string{"device_total_bytes": "11996954624", "context_failed": "true"},
	},
	// XLA
	{
		"newest wording",
		"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.95GiB with allocator GPU_0_bfc on device 0. [executable_name='jit_greater']",
		"xla-oom", "undetermined_no_state",
		map[string]string{"requested_text": `"1.95GiB"`, "allocator": `"GPU_0_bfc"`, "device_ordinal": "0", "executable": `"jit_greater"`},
	},
	{
		"platform allocator, usual size",
		"Execution of replica 0 failed: RESOURCE_EXHAUSTED: Failed to allocate request for 12.00GiB (12884901888B) on device ordinal 2",
		"xla-oom", "undetermined_no_state",
		map[string]string{"requested_bytes": "12884901888", "device_ordinal": "2", "temp_bytes": "null"},
	},
	{
		"TPU without padding",
		"E1000: CompileTimeHbmOom: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 20.00G of 15.75G hbm. Exceeded hbm capacity by 4.25G.\n\nProgram hbm requirement 19.90G:\n    global           1.00G\n    HLO temp         18.90G (99.9% utilization: Unpadded (18.80G) Padded (18.82G), 0.1% fragmentation (20.00M))\n\n  Largest program allocations in hbm:\n\n  1. Size: 4.00G\n     Operator: op_name=\"jit(f)/dot\"\n     Shape: bf16[32768,65536]{1,0:T(8,128)(2,1)}\n     Unpadded size: 4.00G\n     XLA label: fusion.1\n     Allocation type: HLO temp\n     ==========================\n",
		"xla-tpu-oom", "program_exceeds_device",
		map[string]string{"temp_unpadded_text": `"18.80G"`, "temp_utilization_percent": "99.9", "exceeded_text": `"4.25G"`, "fits_without_this_padding": "null"},
	},
	// ONNX Runtime
	{
		"same as requested",
		"2022-01-07 07:17:51.913799 [I:onnxruntime:log, bfc_arena.cc:26 BFCArena] Creating BFCArena for Cuda with following configs: initial_chunk_size_bytes: 1048576 max_dead_bytes_per_chunk: 134217728 initial_growth_chunk_size_bytes: 2097152 memory limit: 2147483648 arena_extend_strategy: 1\n2022-01-07 07:17:51.913839 [I:onnxruntime:log, bfc_arena.cc:306 AllocateRawInternal] Extending BFCArena for Cuda. bin_num:9 (requested) num_bytes: 160000 (actual) rounded_bytes:160000\n2022-01-07 [I:onnxruntime:log, bfc_arena.cc:186 Extend] Extended allocation by 160000 bytes.\n2022-01-07 [I:onnxruntime:log, bfc_arena.cc:189 Extend] Total allocated bytes: 160000\n",
		"ort-bfcarena", "arena_growth_exact",
		map[string]string{"memory_limit": "2147483648", "limit_is_unlimited": "false", "strategy_name": `"kSameAsRequested"`, "overhead_ratio": "1"},
	},
	{
		"a small request refused by the device",
		"[E:onnxruntime:, sequential_executor.cc:494 ExecuteKernel] Non-zero status code returned while running Conv node. Name:'Conv_7' Status Message: /onnxruntime/core/framework/bfc_arena.cc:342 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool) Failed to allocate memory for requested buffer of size 268435456\n",
		"ort-bfcarena", "undetermined_no_state",
		map[string]string{"node": `"Conv_7"`, "requested_rounded_bytes": "268435456", "halves_as_float32": "null", "source_line": "342"},
	},
	// RMM
	{
		"failure and a smaller retry",
		"Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00:000001,allocate,0x100,1000,0x1\n1,10:00:00:000002,allocate failure,(nil),5000,0x1\n1,10:00:00:000003,allocate,0x200,2000,0x1\n1,10:00:00:000004,free,0x200,2000,0x1\n1,10:00:00:000005,free,0x100,1000,0x1\n",
		"rmm-log", "failure_then_smaller_retry",
		map[string]string{"failures": "1", "failed_bytes": "5000", "retry_bytes": "2000", "live_bytes_at_end": "0", "peak_bytes": "3000"},
	},
	{
		"rows within a program's output",
		"24/01/01 10:00:00 INFO Executor: 7,10:00:00.000001,allocate,0x7f0000000000,256,0x0\nsomething else\nworker-2: 8,10:00:00.000002,deallocate,0x7f0000000000,256,0x0\n",
		"rmm-log", "balanced",
		map[string]string{"events": "2", "cross_thread_frees": "1", "streams": `["0x0"]`},
	},
	// nvidia-smi
	{"a wide screen, everything explained", wideScreen, "nvidia-smi", "explained", map[string]string{
		"driver": `"535.104.05"`, "cuda_version": `"12.2"`, "accounted_mib": "20480", "unaccounted_mib": "37",
		"processes": `[{"gpu":0,"pid":4242,"type":"C","name":"python train.py","used_mib":20480}]`,
		"gpus":      `[{"index":0,"name_shown":"NVIDIA RTX A5000","used_mib":20517,"total_mib":24564,"free_mib":4047,"util_percent":98}]`,
	}},
	{"a dead holder", strings.ReplaceAll(wideScreen, "python train.py", "[Not Found]    "), "nvidia-smi", "zombie_holder", nil},
	{"Windows", strings.ReplaceAll(wideScreen, "20480MiB", "     N/A"), "nvidia-smi", "undetermined_no_state", map[string]string{"accounted_mib": "null"}},
	{
		"devices only", "index, name, memory.total [MiB], memory.used [MiB]\n0, Tesla T4, 15360 MiB, 3 MiB\n1, Tesla T4, 15360 MiB, [N/A]\n",
		"nvidia-smi", "parse_only",
		map[string]string{"processes": "null", "accounted_mib": "null", "reserved_mib": "null"},
	},
	{
		"no units, quoted header order", "pid, gpu_uuid, used_gpu_memory [MiB], process_name\n1, GPU-a, 100, a b, c\n2, GPU-b, 200, a b, c\n3, GPU-c, 300, a b, c\n",
		"nvidia-smi", "parse_only",
		map[string]string{"processes": "3", "accounted_mib": "600"},
	},
	// Steps
	{
		"get_memory_info, flat",
		"step 1 {'current': 1048576000, 'peak': 2097152000}\nstep 2 {'current': 1048576000, 'peak': 2097152000}\nstep 3 {'current': 1048576000, 'peak': 2097152000}\nstep 4 {'current': 1048576000, 'peak': 2097152000}\n",
		"step-memory-log", "no_growth",
		map[string]string{"samples": "4", "device_current_first": "1048576000", "unit": `"bytes as printed"`, "device_current_slope_per_step": "0"},
	},
	{
		"get_memory_info, growing",
		"step 10 {'current': 1000000000, 'peak': 2000000000}\nstep 20 {'current': 1100000000, 'peak': 2100000000}\nstep 30 {'current': 1200000000, 'peak': 2200000000}\n",
		"step-memory-log", "leak_growth_per_step",
		map[string]string{"device_current_slope_per_step": "10000000"},
	},
	{
		"a warm-up that levels off",
		"Epoch: [0]  [ 0/100]  max mem: 1000\nEpoch: [0]  [10/100]  max mem: 5000\nEpoch: [0]  [20/100]  max mem: 5200\nEpoch: [0]  [30/100]  max mem: 5210\nEpoch: [0]  [40/100]  max mem: 5210\nEpoch: [0]  [50/100]  max mem: 5210\nEpoch: [0]  [60/100]  max mem: 5210\nEpoch: [0]  [70/100]  max mem: 5210\n",
		"step-memory-log", "no_growth",
		map[string]string{"samples": "8", "first": "1000", "last": "5210", "monotonic": "true"},
	},
	{
		"allocated with a unit",
		"iter 100: loss 2.1, allocated 1024.5 MB\niter 200: loss 2.0, allocated 1124.5 MB\niter 300: loss 1.9, allocated 1224.5 MB\n",
		"step-memory-log", "leak_growth_per_step",
		map[string]string{"slope_mb_per_step": "1", "unit": `"MB as printed"`},
	},
	// TensorFlow's memory log
	{
		"a whole life",
		"__LOG_MEMORY__ MemoryLogStep { step_id: 1 handle: \"->a:0\" }\n__LOG_MEMORY__ MemoryLogTensorAllocation { step_id: 1 kernel_name: \"a\\\"b\" tensor { dtype: DT_FLOAT shape { dim { size: 64 } } allocation_description { requested_bytes: 256 allocated_bytes: 512 allocator_name: \"GPU_0_bfc\" allocation_id: 1 ptr: 4096 } } }\n__LOG_MEMORY__ MemoryLogTensorDeallocation { allocation_id: 1 allocator_name: \"GPU_0_bfc\" }\n__LOG_MEMORY__ MemoryLogTensorDeallocation { allocation_id: 1 allocator_name: \"cp",
		"tf-log-memory", "parse_only",
		map[string]string{"records": "3", "unmatched_deallocations": "0", "tensor_allocated_bytes": "256", "unreadable_lines": "1", "prefix_styles": "1"},
	},
}

// container is the message of a program that cannot know its own number.
const container = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a total capacity of 7.92 GiB of which 110.12 MiB is free. Process 3021 has 7.80 GiB memory in use. Of the allocated memory 7.20 GiB is allocated by PyTorch, and 210.30 MiB is reserved by PyTorch but unallocated."

const table = `|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 1            |        cudaMalloc retries: 1         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |   1062 MiB |   4877 MiB |  89299 MiB |  88237 MiB |
|       from large pool |   1048 MiB |   4865 MiB |  89263 MiB |  88215 MiB |
|---------------------------------------------------------------------------|
| GPU reserved memory   |  12420 MiB |  12420 MiB |  16924 MiB |   4504 MiB |
|===========================================================================|
`

const wideScreen = `Mon Dec 19 13:05:20 2022
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.104.05             Driver Version: 535.104.05   CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
|   0  NVIDIA RTX A5000               Off | 00000000:01:00.0 Off |                  Off |
| 30%   52C    P2             210W / 230W |  20517MiB / 24564MiB |     98%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+

+---------------------------------------------------------------------------------------+
| Processes:                                                                            |
|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |
|        ID   ID                                                             Usage      |
|=======================================================================================|
|    0   N/A  N/A      4242      C   python train.py                           20480MiB |
+---------------------------------------------------------------------------------------+
`

func TestWordings(t *testing.T) {
	for _, c := range wordings {
		t.Run(c.kind+"/"+c.name, func(t *testing.T) {
			text, err := ReadText(c.name, strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			all := text.All()
			if len(all) != 1 {
				t.Fatalf("%d readings: %+v", len(all), all)
			}
			checkReading(t, all[0], c.kind, c.verdict, c.facts)
		})
	}
}

// What a message advises, and says besides, follows from what it tells.
func TestWordsOfPyTorch(t *testing.T) {
	for name, c := range map[string]struct {
		text, secondary string
		has, lacks      []string
	}{
		"a container": {
			container, "fragmented",
			[]string{"Process 3021 is most likely this program itself", "91 % of what PyTorch may use is allocated", "process 3021, this program", "96.42 MiB would remain"},
			[]string{"held by other", "Free the card", "private pools"},
		},
		"in pieces, without private pools": {
			"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 14.90 GiB memory in use. Of the allocated memory 8.00 GiB is allocated by PyTorch, and 6.40 GiB is reserved by PyTorch but unallocated.", "",
			[]string{"Free the cache between phases."},
			[]string{"private pools"},
		},
		"others named": {
			"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 900.00 MiB. GPU 0 has a total capacity of 79.19 GiB of which 679.38 MiB is free. Including non-PyTorch memory, this process has 72.66 GiB memory in use. Process 11111 has 3.66 GiB memory in use. Process 22222 has 2.02 GiB memory in use. Of the allocated memory 71.60 GiB is allocated by PyTorch, with 2.98 GiB allocated in private pools (e.g., CUDA Graphs), and 1.35 GiB is reserved by PyTorch but unallocated.", "full",
			[]string{"5.68 GiB are held by other processes", "held by other processes 5.68 GiB", "leaves (5.58 GiB)"},
			[]string{"held outside of PyTorch"},
		},
	} {
		text, err := ReadText(name, strings.NewReader(c.text))
		if err != nil {
			t.Fatal(err)
		}
		r := text.All()[0]
		all := r.Why + "\n" + strings.Join(r.Next, "\n") + "\n" + strings.Join(r.Open, "\n")
		for _, row := range r.Rows {
			all += "\n" + row.Label + " " + row.Value
		}
		if r.Secondary != c.secondary {
			t.Errorf("%s: beside it %q, want %q", name, r.Secondary, c.secondary)
		}
		for _, s := range c.has {
			if !strings.Contains(all, s) {
				t.Errorf("%s: no %q in\n%s", name, s, all)
			}
		}
		for _, s := range c.lacks {
			if strings.Contains(all, s) {
				t.Errorf("%s: %q in\n%s", name, s, all)
			}
		}
	}
}

func checkReading(t *testing.T, r *reading.Reading, kind, verdict string, facts map[string]string) {
	t.Helper()
	if r.Kind != kind || r.Verdict != verdict {
		t.Errorf("%s: %s (%s), want %s: %s", r.Kind, r.Verdict, r.Why, kind, verdict)
	}
	for name, want := range facts {
		v, ok := r.Facts.Get(name)
		if got := string(v.AppendJSON(nil)); !ok || got != want {
			t.Errorf("%s = %s (there: %v), want %s", name, got, ok, want)
		}
	}
}

// TestPastedTogether: what is pasted into one text is told apart, whatever the
// order.
func TestPastedTogether(t *testing.T) {
	var pieces []string
	for _, w := range wordings {
		switch w.name {
		case "1.4, full", "TPU without padding", "same as requested", "failure and a smaller retry", "a wide screen, everything explained", "a whole life":
			pieces = append(pieces, strings.TrimRight(w.text, "\n"))
		}
	}
	if len(pieces) != 6 {
		t.Fatalf("%d pieces", len(pieces))
	}
	for shift := range pieces {
		order := append(append([]string{}, pieces[shift:]...), pieces[:shift]...)
		text, err := ReadText("all", strings.NewReader(strings.Join(order, "\n\nand then\n")))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range text.All() {
			got = append(got, r.Verdict)
		}
		want := map[string]int{"full": 1, "program_exceeds_device": 1, "arena_growth_exact": 1, "failure_then_smaller_retry": 1, "explained": 1, "parse_only": 1}
		for _, v := range got {
			want[v]--
		}
		for v, n := range want {
			if n != 0 {
				t.Errorf("order %d: %s is %d off in %v", shift, v, n, got)
			}
		}
	}
}

// Each device of a program that runs on several has its own allocator's lines,
// and the same message.
func TestOneMessageOfTwoDevices(t *testing.T) {
	var b strings.Builder
	for _, gpu := range []string{"0", "1"} {
		b.WriteString("2025-03-14 21:29:02.887840: W external/xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_" + gpu + "_bfc) ran out of memory trying to allocate 4.50GiB (rounded to 4831838208)requested by op \n")
		b.WriteString("2025-03-14 21:29:02.888121: W external/xla/xla/tsl/framework/bfc_allocator.cc:512] " + strings.Repeat("*", 98+len(gpu)) + "_\n")
	}
	for _, replica := range []string{"0", "1"} {
		b.WriteString("E0314 21:29:02.854727  000000 pjrt_stream_executor_client.cc:3045] Execution of replica " + replica + " failed: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4831838208 bytes. [tf-allocator-allocation-error='']\n")
	}
	text, err := ReadText("two", strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	all := text.All()
	if len(all) != 2 {
		t.Fatalf("%d readings", len(all))
	}
	for i, want := range []string{`"GPU_0_bfc"`, `"GPU_1_bfc"`} {
		checkReading(t, all[i], "xla-oom", "full", map[string]string{"allocator": want, "requested_bytes": "4831838208", "free_cells_in_bar": "1"})
	}
}

func TestNothing(t *testing.T) {
	for _, s := range []string{
		"", "\n", "Epoch 1/10\nloss 0.1\n", "a,b,c\n1,2,3\n", "memory\nmemory\nmemory 5\n", "GPU memory is fun\n| 1 | 2 |\n",
		"Attempting to allocate 12 seats. That did not work.\n", "He Used 5 tries, over capacity by 2\n", "the total usage >= 5\n",
		"2024-01-01 10:00:00 used memory\nstep 1 loss 3.5\nstep 2 loss 3.4\nstep 3 loss 3.3\n",
	} {
		text, err := ReadText("x", strings.NewReader(s))
		if _, ok := errors.AsType[*UnsupportedError](err); !ok {
			t.Errorf("%q: %v, %+v", s, err, text)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, w := range wordings {
		f.Add(w.text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, err := ReadText("x", strings.NewReader(s))
		if err != nil {
			return
		}
		for _, r := range text.All() {
			if r.Verdict == "" {
				t.Errorf("%s has no verdict", r.Kind)
			}
			r.AppendJSON(nil)
		}
	})
}

func BenchmarkText(b *testing.B) {
	for _, name := range []string{"1.4, full", "same as requested", "failure and a smaller retry", "a whole life", "allocated with a unit", "a wide screen, everything explained"} {
		for _, w := range wordings {
			if w.name != name {
				continue
			}
			b.Run(w.kind, func(b *testing.B) {
				s := strings.Repeat(w.text, 1+(1<<20)/len(w.text))
				b.SetBytes(int64(len(s)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := ReadText("x", strings.NewReader(s)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
