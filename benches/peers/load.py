"""The load: each function asks one server for some seconds and returns how often it answered in a second.

A load generator runs on the processors that the server does not use. A response with an error ends the
measurement.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

from servers import HOST, LOAD_CPUS, PROGRAMS


def output(*command):
    return subprocess.run(["taskset", "-c", LOAD_CPUS, *command], check=True, capture_output=True, text=True).stdout


def wrk(target, path, seconds, tls=False, connections=32, fields=(), script=None):
    """Asks without pauses over HTTP/1.1."""
    url = f"{'https' if tls else 'http'}://127.0.0.1:{target.port}{path}"
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s"]
    for field in [f"Host: {target.host}", *fields]:
        command += ["-H", field]
    if script:
        command += ["-s", script]
    out = output(*command, url)
    # wrk counts what is not 2xx or 3xx.
    if "Non-2xx" in out or "Socket errors" in out:
        sys.exit(f"failed requests on {url}:\n{out}")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))


def requests(target, path, seconds, kind, certificate=None):
    """Asks without pauses over HTTP/1.1 with less work than wrk: on connections that are `kept`, or `closed` after each response."""
    command = [os.path.join(PROGRAMS, "requests"), kind, str(target.port), target.host, path, str(seconds)]
    out = output(*command, *([certificate] if certificate else []))
    responses, taken = map(float, re.match(r"(\d+) responses, ([\d.]+) s", out).groups())
    return responses / taken


def messages(bench, target, method, params, seconds):
    """Sends MCP messages. Those with `_meta` have no handshake before them."""
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    fields = {"Content-Type": "application/json"}
    if "_meta" in params:
        fields |= {"MCP-Protocol-Version": params["_meta"]["io.modelcontextprotocol/protocolVersion"], "Mcp-Method": method}
    script = bench.path(f"{method.replace('/', '-')}.lua")
    with open(script, "w") as f:
        f.write(f"wrk.method = 'POST'\nwrk.body = [=[{message}]=]\n")
        f.writelines(f"wrk.headers['{name}'] = '{value}'\n" for name, value in fields.items())
    return wrk(target, "/mcp", seconds, script=script)


def check_h2load(out, url):
    failed = re.search(r"(\d+) failed, (\d+) errored", out)
    done = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", out)
    if int(failed.group(1)) or not int(done.group(1)) or int(done.group(3)) or int(done.group(4)):
        sys.exit(f"failed requests on {url}:\n{out}")


def h2load(target, path, seconds, fields=(), connections=8, streams=32):
    """Asks without pauses over HTTP/2 with TLS."""
    url = f"https://{target.host}:{target.port}{path}"
    command = ["h2load", "-t1", f"-c{connections}", f"-m{streams}", f"-D{seconds}", f"--connect-to=127.0.0.1:{target.port}"]
    for field in fields:
        command += ["-H", field]
    out = output(*command, url)
    check_h2load(out, url)
    return float(re.search(r"finished in [\d.]+m?s, ([\d.]+) req/s", out).group(1))


def latencies(target, path, seconds, rate, connections=32):
    """Asks `rate` times a second over HTTP/1.1, on a schedule. Returns the sorted times of the responses in microseconds."""
    url = f"http://{target.host}:{target.port}{path}"
    with tempfile.TemporaryDirectory() as directory:
        log = os.path.join(directory, "log")
        out = output("h2load", "--h1", "-t1", f"-c{connections}", f"--rps={rate / connections:.1f}", f"-D{seconds}",
                     f"--connect-to=127.0.0.1:{target.port}", f"--log-file={log}", url)
        check_h2load(out, url)
        with open(log) as lines:
            times = sorted(int(line.split("\t")[2]) for line in lines)
    if len(times) < rate * seconds * 0.9:
        sys.exit(f"{url}: {len(times)} responses, of {rate * seconds:.0f}")
    return times


def handshakes(target, path, seconds, kind, certificate):
    """Makes a TLS 1.3 handshake for each request: `full` or `resumed`."""
    out = output(os.path.join(PROGRAMS, "handshakes"), kind, str(target.port), HOST, path, certificate, str(seconds))
    connections, resumed, taken = map(float, re.match(r"(\d+) connections, (\d+) resumed, ([\d.]+) s", out).groups())
    if (resumed > connections * 0.9) != (kind == "resumed"):
        sys.exit(f"{kind} handshakes: {out}")
    return connections / taken
