"""The clients of the race: how each is started, and how its results are read.

A client is a function of a load, the address of the server, an empty folder for its
files, and the tools (Tools). It returns its command, and a function that reads what the
client reported, as Reported, once the command has ended.

The settings are ours. Nobody who works on a peer has reviewed them.
"""

import glob
import json
import subprocess
from dataclasses import dataclass, field


@dataclass
class Tools:
    reprise: str  # the binary
    installed: str  # where setup.sh put the peers

    @property
    def tokenizer(self):
        return f'{self.installed}/tok'

    def program(self, peer):
        """Returns the path of a peer's program: vLLM's is a binary, the others have an environment of Python."""
        return f'{self.installed}/vllm-rs' if peer == 'vllm-rs' else f'{self.installed}/{peer}/bin/{peer}'


@dataclass
class Reported:
    """What a client says of the requests that it completed. Times are in ms."""

    completed: int
    ttft: list
    gaps: list = field(default_factory=list)  # between two tokens, all requests together
    mean_gaps: list = field(default_factory=list)  # one for each request, where the client keeps no gaps


def reprise(load, url, folder, tools, connections='per-request'):
    """Reprise, with the trace that it imported. A connection for each request is its default."""
    results = f'{folder}/results.parquet'
    command = [tools.reprise, 'replay', load.parquet, '--url', url, '-o', results,
               '--tokenizer', f'{tools.tokenizer}/tokenizer.json',
               '--connections', connections,
               '--scrape', 'none',  # the server has no metrics
               '--quiet', '--json']

    def read():
        # The definitions of vLLM count TTFT from the instant when a request was sent, as
        # the peers do. Reprise's own count from when it was due.
        # A run that is not to be trusted has exit code 4 here too, and is reported all the same.
        report = subprocess.run([tools.reprise, 'report', results, '--format', 'vllm', '--save-detailed', '--definitions', 'vllm'],
                                capture_output=True, text=True)
        if report.returncode not in (0, 4):
            raise ValueError(report.stderr)
        return read_vllm_json(json.loads(report.stdout))

    return command, read


def reprise_pooled(load, url, folder, tools):
    """Reprise with connections that are used again, as the peers have them."""
    return reprise(load, url, folder, tools, connections='pooled')


def vllm_rs(load, url, folder, tools):
    """vLLM's client in Rust, which its wheel holds."""
    command = [tools.program('vllm-rs'), 'bench', 'serve', '--backend', 'vllm', '--base-url', url, '--model', 'truth',
               '--tokenizer', tools.tokenizer,
               '--dataset-name', 'timed_trace', '--dataset-path', load.mooncake,
               '--timed-trace-chunk-hash-size', '512',  # tokens that a hash id stands for
               '--timed-trace-sec-multiplier', '0.001',  # the trace has milliseconds
               '--num-prompts', str(load.requests), '--ignore-eos',
               '--save-result', '--save-detailed', '--result-dir', folder, '--result-filename', 'results.json',
               '--percentile-metrics', 'ttft,tpot,itl,e2el', '--disable-tqdm']

    def read():
        with open(f'{folder}/results.json') as file:
            return read_vllm_json(json.load(file))

    return command, read


def read_vllm_json(results):
    """Reads the detailed JSON of vllm bench serve, in which failed requests have a TTFT of 0."""
    return Reported(completed=results['completed'],
                    ttft=[seconds * 1e3 for seconds in results['ttfts'] if seconds],
                    gaps=[seconds * 1e3 for gaps in results['itls'] for seconds in gaps])


def aiperf(load, url, folder, tools):
    """AIPerf. Its tokenizer comes from the offline cache: it refuses the path of a local one."""
    command = [tools.program('aiperf'), 'profile', '-m', 'truth', '--url', url,
               '--endpoint-type', 'completions', '--streaming',
               '--input-file', load.mooncake, '--custom-dataset-type', 'mooncake_trace',
               '--fixed-schedule',  # at the times of the trace
               '--tokenizer', 'truth/tok', '--use-server-token-count',
               '--extra-inputs', 'ignore_eos:true',
               '--artifact-dir', f'{folder}/artifacts', '--ui', 'none',
               '--no-server-metrics', '--no-gpu-telemetry']

    def read():
        reported = Reported(completed=0, ttft=[])
        with open(only_file(f'{folder}/artifacts/**/profile_export.jsonl')) as file:
            for line in file:
                request = json.loads(line)
                if request.get('error') or request['metadata'].get('benchmark_phase') not in (None, 'profiling'):
                    continue
                reported.completed += 1
                reported.ttft.append(request['metrics']['time_to_first_token']['value'])
                if 'inter_token_latency' in request['metrics']:
                    reported.mean_gaps.append(request['metrics']['inter_token_latency']['value'])
        return reported

    return command, read


def guidellm(load, url, folder, tools):
    """GuideLLM, by its profile of replays."""
    data = {'kind': 'mooncake', 'source': {'kind': 'json_file', 'path': load.mooncake}}
    command = [tools.program('guidellm'), 'run',
               '--backend', f'kind=openai_http,target={url},model=truth,request_format=/v1/completions',
               '--profile', 'kind=replay,time_scale=0.001',  # it takes the milliseconds of the trace for seconds
               '--data', json.dumps(data),
               '--tokenizer', f'kind=hf_auto,model={tools.tokenizer}',
               '--output', f'kind=json,path={folder}/results.json', '--disable-console-interactive']

    def read():
        with open(f'{folder}/results.json') as file:
            requests = json.load(file)['benchmarks'][0]['requests']['successful']
        return Reported(completed=len(requests),
                        ttft=[request['time_to_first_token_ms'] for request in requests],
                        mean_gaps=[request['inter_token_latency_ms'] for request in requests])

    return command, read


def inference_perf(load, url, folder, tools):
    """inference-perf. It reads traces of Azure's form, without prefixes, and makes random prompts for them."""
    trace = {'file': load.azure, 'format': 'AzurePublicDataset'}
    config = {
        'load': {
            'type': 'trace_replay', 'trace': trace,
            'worker_max_concurrency': 1000,  # the default of 100 would hold requests back
            'stages': [{'rate': load.rate, 'duration': int(load.seconds)}],  # 0.7 wants them beside a trace
        },
        'data': {'type': 'random', 'trace': trace},
        'api': {'type': 'completion', 'streaming': True},
        'server': {'type': 'vllm', 'model_name': 'truth', 'base_url': url, 'ignore_eos': True},
        'tokenizer': {'pretrained_model_name_or_path': tools.tokenizer},
        'storage': {'local_storage': {'path': f'{folder}/reports'}},
        'report': {'request_lifecycle': {
            'summary': True, 'per_stage': True, 'per_request': True,
            'per_request_fields': {'request': False, 'response': False, 'computed_metrics': True}}},
    }
    with open(f'{folder}/config.yml', 'w') as file:
        json.dump(config, file, indent=2)  # JSON is YAML
    command = [tools.program('inference-perf'), '--config_file', f'{folder}/config.yml']

    def read():
        reported = Reported(completed=0, ttft=[])
        with open(only_file(f'{folder}/reports/**/per_request_lifecycle_metrics.json')) as file:
            for request in json.load(file):
                metrics = request.get('computed_metrics')
                if request.get('error') or not metrics:
                    continue
                reported.completed += 1
                if metrics['time_to_first_token'] is not None:
                    reported.ttft.append(metrics['time_to_first_token'] * 1e3)
                reported.gaps += [seconds * 1e3 for seconds in metrics['inter_token_latencies']]
        return reported

    return command, read


def only_file(pattern):
    """Returns the one file of a pattern, whose folder has a name that the client chose."""
    names = glob.glob(pattern, recursive=True)
    if len(names) != 1:
        raise FileNotFoundError(f'{len(names)} files match {pattern}, not 1')
    return names[0]


CLIENTS = {
    'reprise': reprise,
    'reprise-pooled': reprise_pooled,
    'vllm-rs': vllm_rs,
    'aiperf': aiperf,
    'guidellm': guidellm,
    'inference-perf': inference_perf,
}
