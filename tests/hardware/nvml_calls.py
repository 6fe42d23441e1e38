#!/usr/bin/env python3
"""What each of NVIDIA's calls costs that jobtrace makes in a reading of GPU 0: CPU time of the thread and time elapsed, in
microseconds a call, the median of so many (usage: nvml_calls.py [CALLS [LIBRARY]]), and how often it is made in a reading
with one process on the GPU and with none; then what a reading costs by that. Then which files of this process stay open
when the library was opened and closed five times. Needs the driver alone; start work on the GPU first to see the costs of
a busy one."""

import ctypes as c
import os
import statistics
import sys
import time

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
LIBRARY = sys.argv[2] if len(sys.argv) > 2 else "libnvidia-ml.so.1"
# How often a call is made in a reading with one process and with none, on a GPU that has counters of activity: always, a
# tenth of the time (tracer-user/src/gpu/nvml/pace.rs), while somebody is there, never.
ALWAYS, TENTH, HELD, NEVER = (1, 1), (0.1, 0.1), (1, 0), (0, 0)
# nvml_wrapper's numbers of fields, as tracer-user/src/gpu/nvml/fields.rs asks for them, and what they are of; those that a
# GPU lacks are not asked for again. One call asks for all of them there, so that together they cost a little less.
FIELDS = {
    "memory temperature": ([82], ALWAYS), "ECC corrected": ([3], ALWAYS), "remapped rows": ([142, 143], ALWAYS),
    "PCIe replays": ([94], TENTH), "PCIe bytes": ([197, 198], NEVER), "NVLink errors": ([38, 45, 52, 59], ALWAYS),
    "time throttled": ([74, 75, 76], HELD), "time throttled, by newer counters": ([251, 252, 253], HELD),
}
reading_us = [0.0, 0.0]


class Field(c.Structure):
    _fields_ = [("id", c.c_uint), ("scope", c.c_uint), ("time", c.c_longlong), ("took_us", c.c_longlong),
                ("kind", c.c_uint), ("result", c.c_uint), ("value", c.c_ulonglong)]


class Gpm(c.Structure):
    class Metric(c.Structure):
        _fields_ = [("id", c.c_uint), ("result", c.c_uint), ("value", c.c_double), ("names", c.c_char_p * 3)]

    _fields_ = [("version", c.c_uint), ("count", c.c_uint), ("samples", c.c_void_p * 2), ("metrics", Metric * 210)]


def files():
    """What this process has open, as its links say."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            pass
    return sorted(found)


def measured(what, often, call):
    """Prints what `call`, which gives the library's answer, costs; one that fails is not made again."""
    cpu, wall, answer = [], [], None
    for _ in range(CALLS):
        before, begin = time.thread_time_ns(), time.perf_counter_ns()
        answer = call()
        wall.append(time.perf_counter_ns() - begin)
        cpu.append(time.thread_time_ns() - before)
        time.sleep(0.02)
    cpu, wall = statistics.median(cpu) / 1e3, statistics.median(wall) / 1e3
    if not answer:
        for at, times in enumerate(often):
            reading_us[at] += times * cpu
    held, idle = often
    print(f"{cpu:9.1f} {wall:9.1f} {held:5} {idle:5}  {what}" + (f" (answer {answer})" if answer else ""), flush=True)


nvml = c.CDLL(LIBRARY)
assert nvml.nvmlInit_v2() == 0, "the library does not open"
gpu = c.c_void_p()
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, c.byref(gpu)) == 0, "there is no GPU 0"
word, two, room = c.c_uint(), (c.c_uint * 2)(), (c.c_ubyte * (1 << 20))()
long = c.c_ulonglong()


def function(name):
    """The function, or nothing where this library has none."""
    return getattr(nvml, name, None)


def simple(what, name, *arguments, often=ALWAYS):
    if function(name):
        measured(f"{what}: {name}", often, lambda: function(name)(gpu, *arguments))


print("  CPU, us   all, us  held  idle  call")
for kind, name in [(1, "GPU"), (2, "memory")]:
    def ring(null, since, kind=kind):
        value, count = c.c_uint(1), c.c_uint(0 if null else 4096)
        return nvml.nvmlDeviceGetSamples(gpu, kind, c.c_ulonglong(since), c.byref(value), c.byref(count),
                                         None if null else room)
    often = HELD if name == "GPU" else NEVER
    measured(f"utilisation ring of the {name}, size", often, lambda: ring(True, 0))
    measured(f"utilisation ring of the {name}, all", NEVER, lambda: ring(False, 0))
    second = lambda ring=ring: ring(False, int((time.time() - 1) * 1e6))
    measured(f"utilisation ring of the {name}, the last second", often, second)
simple("utilisation", "nvmlDeviceGetUtilizationRates", two)


def processes(null):
    count = c.c_uint(0 if null else 4096)
    return nvml.nvmlDeviceGetProcessUtilization(gpu, None if null else room, c.byref(count), c.c_ulonglong(0))


measured("utilisation by process, size", NEVER, lambda: processes(True))
measured("utilisation by process", NEVER, lambda: processes(False))
for kind in ["Compute", "MPSCompute", "Graphics"]:
    def listed(kind=kind):
        count = c.c_uint(64)
        return function(f"nvmlDeviceGet{kind}RunningProcesses_v3")(gpu, c.byref(count), room)
    if function(f"nvmlDeviceGet{kind}RunningProcesses_v3"):
        measured(f"processes: nvmlDeviceGet{kind}RunningProcesses_v3", ALWAYS, listed)


def memory_v2():
    c.cast(room, c.POINTER(c.c_uint))[0] = 40 | 2 << 24
    return nvml.nvmlDeviceGetMemoryInfo_v2(gpu, room)


if function("nvmlDeviceGetMemoryInfo_v2"):
    measured("memory: nvmlDeviceGetMemoryInfo_v2", ALWAYS, memory_v2)
simple("power", "nvmlDeviceGetPowerUsage", c.byref(word))
simple("energy", "nvmlDeviceGetTotalEnergyConsumption", c.byref(long), often=TENTH)
simple("clock", "nvmlDeviceGetClockInfo", 1, c.byref(word))
simple("memory clock", "nvmlDeviceGetClockInfo", 2, c.byref(word))
simple("temperature", "nvmlDeviceGetTemperature", 0, c.byref(word))
simple("throttling", "nvmlDeviceGetCurrentClocksThrottleReasons", c.byref(long))
simple("power limit", "nvmlDeviceGetEnforcedPowerLimit", c.byref(word))
simple("encoder", "nvmlDeviceGetEncoderUtilization", c.byref(word), two)
simple("decoder", "nvmlDeviceGetDecoderUtilization", c.byref(word), two)
simple("uncorrected errors", "nvmlDeviceGetTotalEccErrors", 1, 0, c.byref(long))
simple("MIG mode", "nvmlDeviceGetMigMode", c.byref(word), two, often=TENTH)
if function("nvmlEventSetCreate"):
    events = c.c_void_p()
    nvml.nvmlEventSetCreate(c.byref(events))
    nvml.nvmlDeviceRegisterEvents(gpu, c.c_ulonglong(8), events)
    # 10: no error came, which is the usual answer.
    waited = lambda: nvml.nvmlEventSetWait_v2(events, room, 0) % 10
    measured("XID errors: nvmlEventSetWait_v2", ALWAYS, waited)
    nvml.nvmlEventSetFree(events)
every = [number for numbers, _ in FIELDS.values() for number in numbers]
for what, (numbers, often) in [*FIELDS.items(), ("all", (every, NEVER))]:
    def fields(numbers=numbers):
        asked = (Field * len(numbers))(*[Field(id=number) for number in numbers])
        answer = nvml.nvmlDeviceGetFieldValues(gpu, len(numbers), asked)
        return answer or [field.result for field in asked if field.result] or None
    measured(f"fields, {what}: {numbers}", often, fields)
if function("nvmlGpmSampleGet"):
    old, new = c.c_void_p(), c.c_void_p()
    nvml.nvmlGpmSampleAlloc(c.byref(old))
    nvml.nvmlGpmSampleAlloc(c.byref(new))
    nvml.nvmlGpmSampleGet(gpu, old)
    time.sleep(0.5)
    measured("activity, a sample: nvmlGpmSampleGet", ALWAYS, lambda: nvml.nvmlGpmSampleGet(gpu, new))
    asked = Gpm(version=1, count=11, samples=(c.c_void_p * 2)(old.value, new.value))
    for at, number in enumerate([2, 5, 10, 3, 11, 12, 13, 20, 21, 60, 61]):
        asked.metrics[at].id = number
    measured("activity, what they say: nvmlGpmMetricsGet", ALWAYS, lambda: nvml.nvmlGpmMetricsGet(c.byref(asked)))
    def allocated():
        sample = c.c_void_p()
        return nvml.nvmlGpmSampleAlloc(c.byref(sample)) or nvml.nvmlGpmSampleFree(sample)
    measured("activity, room for a sample", ALWAYS, allocated)
    for sample in (old, new):
        nvml.nvmlGpmSampleFree(sample)
print("a reading costs {:.2f} ms of CPU with one process, {:.2f} with none".format(*(us / 1e3 for us in reading_us)))

nvml.nvmlShutdown()


def nothing():
    pass


def sets():
    nvml.nvmlEventSetCreate(c.byref(events))
    nvml.nvmlDeviceRegisterEvents(gpu, c.c_ulonglong(8), events)
    nvml.nvmlEventSetFree(events)


def waits():
    nvml.nvmlEventSetCreate(c.byref(events))
    nvml.nvmlDeviceRegisterEvents(gpu, c.c_ulonglong(8), events)
    nvml.nvmlEventSetWait_v2(events, room, 0)
    nvml.nvmlEventSetFree(events)


def samples():
    sample = c.c_void_p()
    nvml.nvmlGpmSampleAlloc(c.byref(sample))
    nvml.nvmlGpmSampleGet(gpu, sample)
    nvml.nvmlGpmSampleFree(sample)


events = c.c_void_p()
for what, needs, work in [("", "nvmlInit_v2", nothing), (" with sets of events", "nvmlEventSetCreate", sets),
                          (" with a wait for events", "nvmlEventSetCreate", waits),
                          (" with samples of activity", "nvmlGpmSampleGet", samples)]:
    if not function(needs):
        continue
    before = files()
    for _ in range(5):
        nvml.nvmlInit_v2()
        nvml.nvmlDeviceGetHandleByIndex_v2(0, c.byref(gpu))
        work()
        nvml.nvmlShutdown()
    left = files()
    for name in before:
        if name in left:
            left.remove(name)
    print(f"open after five openings{what}: {left or 'nothing more'}")
