"""Runs a command, and measures the CPU time and the memory of all its processes, on Linux.

CPU time comes from the first of these that works:

  cgroup v2   cpu.stat of a control group made for the run; needs root or a delegated group
  cgroup v1   cpuacct.usage of such a group; needs root
  rusage      what the kernel adds up for the command and the processes that it waited
              for. A process that outlives its parent is missing.

Memory is the sum of PSS, which counts a page that n processes share as 1/n for each.
It is sampled from /proc, so a peak shorter than the interval is missed. Without a
control group it counts the processes of the command's session.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass

MEMORY_INTERVAL = 0.5  # seconds; reading smaps_rollup costs CPU time that the race needs


@dataclass
class Usage:
    exit_status: int
    timed_out: bool
    started: float  # Unix seconds, just before the command was started
    wall_seconds: float
    cpu_seconds: float
    cpu_source: str  # cgroup v2, cgroup v1 or rusage
    memory_mb: float  # or None where /proc cannot be read


def run_measured(command, folder, environment, timeout):
    """Runs the command in the folder, its output to stdout.txt and stderr.txt there, and returns its Usage."""
    group = ControlGroup.create()
    if group:
        # The shell moves itself into the group and becomes the command, so that no
        # process of the command is ever outside.
        command = ['sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', group.path, *command]
    started = time.time()
    with open(f'{folder}/stdout.txt', 'w') as stdout, open(f'{folder}/stderr.txt', 'w') as stderr:
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr, env=environment, cwd=folder, start_new_session=True)
    members = group.processes if group else lambda: session_processes(process.pid)
    peak, next_sample, resources = None, started, None
    try:
        while resources is None and time.time() < started + timeout:
            if time.time() >= next_sample:
                peak = largest(peak, proportional_memory(members()))
                next_sample = time.time() + MEMORY_INTERVAL
            time.sleep(0.05)
            resources = finished(process)
        wall_seconds = time.time() - started
        timed_out = resources is None
    finally:
        stop_all(members)
        if resources is None:
            _, status, resources = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if group:
            cpu_seconds, cpu_source = group.cpu_seconds(), group.kind
            group.remove()
        else:
            cpu_seconds, cpu_source = resources.ru_utime + resources.ru_stime, 'rusage'
    return Usage(process.returncode, timed_out, started, wall_seconds, cpu_seconds, cpu_source, peak)


def finished(process):
    """Returns the resources used by a process that has ended, with its waited-for children, or None while it runs."""
    pid, status, resources = os.wait4(process.pid, os.WNOHANG)
    if pid == 0:
        return None
    process.returncode = os.waitstatus_to_exitcode(status)
    return resources


def stop_all(members):
    """Ends the processes that are left: by SIGTERM, and after two seconds by SIGKILL."""
    deadline = time.time() + 2
    for number, until in ((signal.SIGTERM, deadline), (signal.SIGKILL, deadline + 2)):
        for pid in members():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        while running(members()) and time.time() < until:
            time.sleep(0.05)


def running(pids):
    """Leaves out zombies, which have ended and wait to be collected."""
    return [pid for pid in pids if process_state(pid)[0] not in ('Z', '')]


class ControlGroup:
    """A control group of the kernel for one command, of version 2 or, for cpuacct, 1."""

    def __init__(self, path, kind):
        self.path, self.kind = path, kind
        self.before = 0.0  # seconds used before the command

    @classmethod
    def create(cls):
        """Returns a group that a process can move into, below the one that this process is in, or None."""
        for parent, kind in control_group_parents():
            path = f'{parent}/reprise-race-{os.getpid()}'
            try:
                os.makedirs(path, exist_ok=True)
            except OSError:
                continue
            group = cls(path, kind)
            trial = subprocess.run(['sh', '-c', 'echo $$ > "$0/cgroup.procs"', path], stderr=subprocess.DEVNULL)
            try:
                if trial.returncode == 0 and group.cpu_seconds() > 0:
                    group.before = group.cpu_seconds()
                    return group
            except OSError:
                pass
            group.remove()
        return None

    def cpu_seconds(self):
        if self.kind == 'cgroup v1':
            with open(f'{self.path}/cpuacct.usage') as file:
                return int(file.read()) / 1e9 - self.before
        with open(f'{self.path}/cpu.stat') as file:
            return int(dict(line.split() for line in file)['usage_usec']) / 1e6 - self.before

    def processes(self):
        try:
            with open(f'{self.path}/cgroup.procs') as file:
                return [int(pid) for pid in file]
        except OSError:
            return []

    def remove(self):
        try:
            os.rmdir(self.path)
        except OSError:
            pass  # the kernel still counts a process that has just ended


def control_group_parents():
    """Lists the folders in /sys of the groups that this process is in, as (folder, kind), version 2 first."""
    try:
        with open('/proc/self/cgroup') as file:
            own = [line.strip().split(':', 2) for line in file]  # hierarchy, controllers, path
        with open('/proc/self/mounts') as file:
            mounts = [line.split() for line in file]
    except OSError:
        return []
    parents = []
    for _, point, system, options, *_ in mounts:
        for hierarchy, controllers, path in own:
            if system == 'cgroup2' and hierarchy == '0':
                parents.append((point + path.rstrip('/'), 'cgroup v2'))
            elif system == 'cgroup' and 'cpuacct' in controllers.split(',') and 'cpuacct' in options.split(','):
                parents.append((point + path.rstrip('/'), 'cgroup v1'))
    return sorted(parents, key=lambda parent: parent[1], reverse=True)


def busy_cores(seconds=1.0):
    """Returns how many cores are busy now, with what a hypervisor takes away (steal)."""
    before = processor_ticks()
    time.sleep(seconds)
    busy, total = (after - earlier for after, earlier in zip(processor_ticks(), before))
    return busy / total * os.cpu_count()


def processor_ticks():
    """Returns the ticks of all cores since boot, those that were busy and all."""
    with open('/proc/stat') as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]  # the rest is in these already
    idle = ticks[3] + ticks[4]  # idle, and waiting for a disk
    return sum(ticks) - idle, sum(ticks)


def session_processes(leader):
    """Returns the ids of the processes of a session, from /proc where there is one."""
    try:
        pids = [int(name) for name in os.listdir('/proc') if name.isdigit()]
    except OSError:
        return [leader]
    return [pid for pid in pids if process_state(pid)[1] == leader]


def process_state(pid):
    """Returns the state of a process, a letter, and its session, or ('', 0) when it has gone."""
    try:
        with open(f'/proc/{pid}/stat') as file:
            fields = file.read().rsplit(')', 1)[1].split()  # the name before may hold spaces
        return fields[0], int(fields[3])
    except OSError:
        return '', 0


def proportional_memory(pids):
    """Returns the sum of PSS in MB, or None where no process tells it."""
    total, told = 0, False
    for pid in pids:
        try:
            with open(f'/proc/{pid}/smaps_rollup') as file:
                for line in file:
                    if line.startswith('Pss:'):
                        total, told = total + int(line.split()[1]), True
                        break
        except OSError:
            pass  # it has ended, or belongs to another user
    return total * 1024 / 1e6 if told else None


def largest(*numbers):
    return max((number for number in numbers if number is not None), default=None)
