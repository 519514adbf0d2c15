"""The servers that `run` compares, on free ports of this machine, with the same content.

A server is pinned to the first processor, what belongs to the load to the others. Each server offers
some *kinds* of work, and `Bench.target(server, kind)` says where: `card` (a discovery document),
`card-log` (with an access log), `card-tls`, `return` (the document from the configuration of nginx),
`proxy` (from a server behind it), `proxy-https` (that server has TLS), `proxy-tls`, `page` and
`page-br` (a page of the site, plain and in brotli), `page-br-tls`.
"""
import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BINARY = os.path.join(ROOT, "target/dist/waypost")
CLIENTS = os.path.join(ROOT, "target/clients")
PROGRAMS = os.path.join(CLIENTS, "peers/target/release")
# The newest nginx of Debian, unpacked beside this system's with its own libraries.
NEWEST = os.path.join(CLIENTS, "nginx-newest")
PEERS = ["nginx", "newest", "haproxy", "caddy", "floor"]

HOST = "docs.bench.test"
CARD = "/.well-known/agent-card.json"
PAGES = "pages.bench.test"
# Its own server has TLS.
SECURE = "secure.bench.test"
PAGE = "/guide"

CPUS = sorted(os.sched_getaffinity(0))
SERVER_CPU, LOAD_CPUS = str(CPUS[0]), ",".join(map(str, CPUS[1:] or CPUS))


@dataclasses.dataclass
class Target:
    """Where a server does one kind of work, and the process that does it."""
    port: int
    process: int
    host: str = HOST


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit(f"nothing listens on port {port}")


def pinned(cpus, *command, **options):
    return subprocess.Popen(["taskset", "-c", cpus, *command], **options)


def processor_seconds(process):
    """Returns the processor time that a process and its children have used."""
    with open(f"/proc/{process}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    children = []
    for task in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{task}/children") as f:
            children += f.read().split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_seconds(int(child)) for child in children)


# Fields that nginx sends with a file, and those of the connection.
OF_NGINX = {"date", "server", "content-type", "content-length", "content-encoding", "last-modified", "etag", "accept-ranges", "connection"}


def quoted(text):
    """Returns a text as nginx reads it between single quotes."""
    return text.replace("\\", "\\\\").replace("'", "\\'")


class Bench:
    """A directory with everything that the servers read, and the running servers."""

    def __init__(self, directory):
        self.directory = directory
        self.processes = []
        self.targets = {}
        self.versions = {}
        # Peers that this machine cannot run, with the reason.
        self.missing = {}

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())

    def target(self, server, kind):
        return self.targets[server, kind]

    def start(self, cpus, ports, *command, **options):
        """Starts a server and waits for its ports. Returns its process."""
        process = pinned(cpus, *command, **options)
        self.processes.append(process)
        for port in ports:
            wait_for(port)
        return process.pid

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    # Content

    def certificates(self):
        """Makes the certificate of the servers, and that of the server behind the proxies, which they verify."""
        os.makedirs(self.path(f"tls/{HOST}"))
        for key, chain, name in [(f"tls/{HOST}/privkey.pem", f"tls/{HOST}/fullchain.pem", HOST), ("origin.key", "origin.pem", "localhost")]:
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                 "-keyout", self.path(key), "-out", self.path(chain), "-subj", f"/CN={name}",
                 "-addext", f"subjectAltName=DNS:{name}", "-addext", "basicConstraints=critical,CA:FALSE"],
                check=True, capture_output=True)
        # HAProxy reads both from one file.
        for name, parts in [("tls.pem", [f"tls/{HOST}/fullchain.pem", f"tls/{HOST}/privkey.pem"])]:
            self.write(name, b"".join(open(self.path(part), "rb").read() for part in parts))

    @property
    def certificate(self):
        return self.path(f"tls/{HOST}/fullchain.pem")

    @property
    def key(self):
        return self.path(f"tls/{HOST}/privkey.pem")

    def documentation(self):
        """Writes two sites: one with a card, one whose pages are as long as real ones."""
        skill = "---\nname: sdk\ndescription: " + "Use the SDK to create, list and cancel orders. " * 9 + "\n---\n\n# SDK\n"
        self.write("docs/skill.md", skill)
        self.write("docs/docs.json", json.dumps({
            "name": "Bench", "description": "Documentation to measure with.", "navigation": {"pages": ["index"]}}))
        self.write("docs/index.mdx", "---\ntitle: Bench\n---\n\nA page.\n")
        groups = [{"group": f"Group {g}", "pages": [f"p/{g}-{n}" for n in range(20)]} for g in range(11)]
        groups[0]["pages"].insert(0, "guide")
        self.write("pages/docs.json", json.dumps({"name": "Pages", "navigation": {"groups": groups}}))
        section = "## Section {}\n\nWhat it is for, when to use it and what happens otherwise, in some words.\n\n```python\nprint({})\n```\n\n"
        text = "".join(section.format(n, n) for n in range(30))
        self.write("pages/guide.mdx", f"---\ntitle: Guide\n---\n\n{text}")
        for group in range(11):
            for n in range(20):
                self.write(f"pages/p/{group}-{n}.mdx", f"---\ntitle: A page about thing {group} {n}\n---\n\nText.\n")
        self.write("pages/skill.md", skill)
        # As long as the lists of tools and of resources.
        for name, words in [("long", 900), ("longer", 1250)]:
            self.write(f"pages/.waypost/skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: A long skill.\n---\n" + "Some words. " * words)

    def fetch(self, host, path, encoding="identity"):
        """Returns the bytes that Waypost sends, and their entity tag."""
        headers = {"Host": host, "Accept-Encoding": encoding}
        url = f"http://127.0.0.1:{self.target('waypost', 'card').port}{path}"
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            assert answer.headers.get("Content-Encoding", "identity") == encoding, answer.headers
            return answer.read(), answer.headers["ETag"]

    def fields(self, host, path, encoding="identity"):
        """Returns the header fields that Waypost sends and nginx does not send by itself, as lines of nginx."""
        headers = {"Host": host, "Accept-Encoding": encoding}
        url = f"http://127.0.0.1:{self.target('waypost', 'card').port}{path}"
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return " ".join(f"add_header {name} '{quoted(value)}';" for name, value in answer.getheaders() if name.lower() not in OF_NGINX)

    def response(self, host, path):
        """Returns the bytes of a whole response of Waypost."""
        with socket.create_connection(("127.0.0.1", self.target("waypost", "card").port)) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            whole = b"".join(iter(lambda: connection.recv(65536), b""))
        return whole.replace(b"Connection: close\r\n", b"").decode()

    # Servers

    def origin(self, body):
        """Starts the server behind the proxies, on the load's processors: `return 200`, and a file of 64 KB."""
        port, secure = free_port(), free_port()
        self.write("origin/large", "x" * 65536)
        self.write("origin.conf", f"""
worker_processes 1; daemon off; pid {self.path('origin.pid')}; error_log {self.path('origin.log')} crit;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 1000000000;
  sendfile on; tcp_nopush on; open_file_cache max=10 inactive=1h;
  ssl_certificate {self.path('origin.pem')}; ssl_certificate_key {self.path('origin.key')};
  server {{ listen 127.0.0.1:{port}; listen 127.0.0.1:{secure} ssl; default_type application/json; location / {{ return 200 '{quoted(body)}'; }}
    location = /large {{ root {self.path('origin')}; }} }} }}
""")
        self.start(LOAD_CPUS, [port, secure], "nginx", "-p", self.directory, "-c", self.path("origin.conf"), stderr=subprocess.DEVNULL)
        return port, secure

    def waypost(self, name, settings):
        """Starts a gateway with both sites. `settings` are lines of its configuration."""
        http, https, operator = free_port(), free_port(), free_port()
        self.write(f"{name}/waypost.yaml", f"""
listen: {{ http: ["127.0.0.1:{http}"], https: ["127.0.0.1:{https}"], operator: "127.0.0.1:{operator}" }}
store: {{ local: {{ path: {self.path('store')} }} }}
queue: {{ sqlite: {{ path: {self.path(name)}/updates.sqlite }} }}
sites: {self.path('sites')}
upstream: {{ private_hosts: ["127.0.0.1", "localhost"] }}
tls: {{ directory: {self.path('tls')}, default: {HOST} }}
clients: {{ mcp_requests_per_second: 0, mcp_site_requests_per_second: 0, handshakes_per_second: 0 }}
{settings}
""")
        conf = self.path(f"{name}/waypost.yaml")
        if not os.path.exists(self.path("store")):
            for project, docs in [("bench", self.path("docs")), ("pages", self.path("pages"))]:
                subprocess.run([BINARY, "publish", docs, "--root", docs, "--project", project, "--conf", conf], check=True, capture_output=True)
        log = open(self.path(f"{name}/log"), "w")
        process = self.start(SERVER_CPU, [http, https], BINARY, "serve", "--conf", conf, stdout=log, stderr=log)
        for kind, port, host in [
                ("card", http, HOST), ("card-tls", https, HOST), ("proxy", http, HOST), ("proxy-https", http, SECURE),
                ("proxy-tls", https, HOST), ("page", http, PAGES), ("page-br", http, PAGES), ("page-br-tls", https, PAGES)]:
            self.targets[name, kind] = Target(port, process, host)

    def waypost_all(self, origin, secure):
        """Starts the gateways of all rows."""
        for project, host, server in [
                ("bench", HOST, f'{{ url: "http://127.0.0.1:{origin}" }}'),
                ("secure", SECURE, f'{{ url: "https://localhost:{secure}", http: "1.1" }}'),
                ("pages", PAGES, "embedded")]:
            self.write(f"sites/{project}.yaml", f"project: {project}\nsubdomain: {project}\ndomains: [{host}]\norigin: {server}\n")
        server = f"upstream_keepalive_pool_size: 512, ca_file: {self.path('origin.pem')}"
        self.waypost("waypost", f"access_log: off\nserver: {{ threads: 1, {server} }}")
        log = f"access_log: {{ file: {self.path('waypost-access.log')} }}"
        self.waypost("waypost-logging", f"{log}\nserver: {{ threads: 1, {server} }}")
        # As many threads as the machine has processors, and the access log on standard output.
        self.waypost("waypost-default", f"server: {{ {server} }}")

    def nginx(self, name, card, origin, secure):
        """Starts an nginx with the same bytes: cached files, `return 200`, and a proxy."""
        command = ["nginx"]
        if name == "newest":
            libraries = os.path.join(NEWEST, "usr/lib", f"{os.uname().machine}-linux-gnu")
            loader = next((os.path.join(libraries, file) for file in sorted(os.listdir(libraries)) if file.startswith("ld-linux")), None) \
                if os.path.isdir(libraries) else None
            if not loader:
                self.missing[name] = "target/clients/nginx-newest is missing"
                return
            command = [loader, "--library-path", libraries, os.path.join(NEWEST, "usr/sbin/nginx")]
        version = subprocess.run([*command, "-v"], capture_output=True, text=True)
        self.versions[name] = version.stderr.strip().split("/")[-1]
        kinds = ["card", "card-log", "card-tls", "return", "proxy", "proxy-https", "proxy-tls", "page", "page-br", "page-br-tls",
                 "card-fields", "page-fields", "page-br-fields"]
        ports = {kind: free_port() for kind in kinds}
        self.write(f"{name}/html{CARD}", card)
        self.write(f"{name}/html{PAGE}", self.fetch(PAGES, PAGE)[0])
        self.write(f"{name}/br{PAGE}", self.fetch(PAGES, PAGE, "br")[0])
        br = f"root {self.path(name)}/br; default_type text/html; add_header Content-Encoding br;"
        files = f"root {self.path(name)}/html; types {{ application/json json; }} default_type application/json;"
        tls = f"ssl_certificate {self.certificate}; ssl_certificate_key {self.key};"
        h2 = "http2_max_requests 1000000000;" if name == "nginx" else ""
        forwarded = """proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $host; proxy_set_header Forwarded "for=$remote_addr;host=$host;proto=$scheme";
      proxy_set_header Via "1.1 nginx"; add_header Via "1.1 nginx";"""
        verified = f"proxy_ssl_verify on; proxy_ssl_trusted_certificate {self.path('origin.pem')}; proxy_ssl_name localhost; proxy_ssl_server_name on;"
        temporary = "".join(f"{kind}_temp_path {self.path(name)}/{kind}; " for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        self.write(f"{name}/nginx.conf", f"""
worker_processes 1; daemon off; pid {self.path(name)}/pid; error_log {self.path(name)}/log crit;
events {{ worker_connections 4096; }}
http {{
  {temporary}
  ssl_protocols TLSv1.2 TLSv1.3;
  sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000; etag on;
  open_file_cache max=1000 inactive=1h; open_file_cache_valid 1h; access_log off;
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 512; keepalive_requests 1000000000; }}
  upstream secure {{ server 127.0.0.1:{secure}; keepalive 512; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{ports['card']}; listen 127.0.0.1:{ports['page']}; {files} }}
  server {{ listen 127.0.0.1:{ports['card-log']}; {files} access_log {self.path(name)}/access.log combined buffer=64k flush=1s; }}
  server {{ listen 127.0.0.1:{ports['card-tls']} ssl http2; {tls} {files} {h2} }}
  server {{ listen 127.0.0.1:{ports['page-br']}; {br} }}
  server {{ listen 127.0.0.1:{ports['page-br-tls']} ssl http2; {tls} {br} {h2} }}
  server {{ listen 127.0.0.1:{ports['card-fields']}; {files} {self.fields(HOST, CARD)} }}
  server {{ listen 127.0.0.1:{ports['page-fields']}; {files} {self.fields(PAGES, PAGE)} }}
  server {{ listen 127.0.0.1:{ports['page-br-fields']}; {br} {self.fields(PAGES, PAGE, "br")} }}
  server {{ listen 127.0.0.1:{ports['return']}; default_type application/json; location / {{ return 200 '{quoted(card)}'; }} }}
  server {{ listen 127.0.0.1:{ports['proxy']};
    location / {{ proxy_pass http://origin; {forwarded} }} }}
  server {{ listen 127.0.0.1:{ports['proxy-https']}; location / {{ proxy_pass https://secure; {verified} {forwarded} }} }}
  server {{ listen 127.0.0.1:{ports['proxy-tls']} ssl http2; {tls} {h2}
    location / {{ proxy_pass http://origin; {forwarded} }} }}
}}
""")
        process = self.start(SERVER_CPU, ports.values(), *command, "-p", self.path(name), "-c", self.path(f"{name}/nginx.conf"), stderr=subprocess.DEVNULL)
        self.targets.update({(name, kind): Target(port, process) for kind, port in ports.items()})

    def haproxy(self, card, origin, secure):
        """Starts HAProxy: the card from its memory, and a proxy."""
        program = shutil.which("haproxy") or shutil.which("/usr/sbin/haproxy")
        if not program:
            self.missing["haproxy"] = "there is no haproxy"
            return
        version = subprocess.run([program, "-v"], capture_output=True, text=True).stdout
        self.versions["haproxy"] = version.split("version ")[-1].split()[0]
        ports = {kind: free_port() for kind in ["card", "card-tls", "proxy", "proxy-https", "proxy-tls"]}
        self.write("haproxy/card", card)
        answer = f"http-request return status 200 content-type application/json file {self.path('haproxy/card')}"
        tls = f"ssl crt {self.path('tls.pem')} alpn h2,http/1.1"
        forwarded = """
  option forwardfor
  http-request set-header X-Real-IP %[src]
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-request set-header Forwarded for=%[src];host=%[req.hdr(host)];proto=http
  http-request set-header Via "1.1 haproxy"
  http-response set-header Via "1.1 haproxy\""""
        self.write("haproxy/haproxy.cfg", f"""
global
  maxconn 8192
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend card
  bind 127.0.0.1:{ports['card']}
  {answer}
frontend card-tls
  bind 127.0.0.1:{ports['card-tls']} {tls}
  {answer}
frontend proxy
  bind 127.0.0.1:{ports['proxy']}
  default_backend origin
frontend proxy-tls
  bind 127.0.0.1:{ports['proxy-tls']} {tls}
  default_backend origin
frontend proxy-https
  bind 127.0.0.1:{ports['proxy-https']}
  default_backend secure
backend origin{forwarded}
  http-reuse always
  server one 127.0.0.1:{origin}
backend secure{forwarded}
  http-reuse always
  server one 127.0.0.1:{secure} ssl verify required ca-file {self.path('origin.pem')} sni str(localhost) verifyhost localhost
""")
        process = self.start(SERVER_CPU, ports.values(), program, "-f", self.path("haproxy/haproxy.cfg"), stderr=subprocess.DEVNULL)
        self.targets.update({("haproxy", kind): Target(port, process) for kind, port in ports.items()})

    def caddy(self, card, origin, secure):
        """Starts Caddy: the card as a file, and a proxy."""
        if not shutil.which("caddy"):
            self.missing["caddy"] = "there is no caddy"
            return
        version = subprocess.run(["caddy", "version"], capture_output=True, text=True).stdout
        self.versions["caddy"] = version.split()[0]
        ports = {kind: free_port() for kind in ["card", "card-tls", "proxy", "proxy-https", "proxy-tls"]}
        self.write(f"caddy/html{CARD}", card)
        files = f"root * {self.path('caddy/html')}\n  file_server"
        fields = "header_up X-Real-IP {remote_host}\n    header_up Via \"1.1 caddy\"\n    header_down Via \"1.1 caddy\""
        proxy = f"reverse_proxy 127.0.0.1:{origin} {{\n    {fields}\n  }}"
        trusted = f"reverse_proxy https://localhost:{secure} {{\n    {fields}\n    transport http {{\n      tls_trusted_ca_certs {self.path('origin.pem')}\n    }}\n  }}"
        tls = f"tls {self.certificate} {self.key}"
        sites = [("card", "http", files), ("card-tls", "https", f"{tls}\n  {files}"), ("proxy", "http", proxy),
                 ("proxy-https", "http", trusted), ("proxy-tls", "https", f"{tls}\n  {proxy}")]
        blocks = "\n".join(f"{scheme}://:{ports[kind]} {{\n  bind 127.0.0.1\n  {lines}\n}}" for kind, scheme, lines in sites)
        self.write("caddy/Caddyfile", f"{{\n  admin off\n  auto_https off\n  default_sni {HOST}\n}}\n{blocks}\n")
        environment = {**os.environ, "GOMAXPROCS": "1", "HOME": self.path("caddy"), "XDG_DATA_HOME": self.path("caddy"), "XDG_CONFIG_HOME": self.path("caddy")}
        log = open(self.path("caddy/log"), "w")
        process = self.start(SERVER_CPU, ports.values(), "caddy", "run", "--config", self.path("caddy/Caddyfile"), "--adapter", "caddyfile",
                             env=environment, stdout=log, stderr=log)
        self.targets.update({("caddy", kind): Target(port, process) for kind, port in ports.items()})

    def floor(self, response):
        """Starts the bare epoll loop: it writes `response`, a whole one with its head, for each request."""
        program = os.path.join(PROGRAMS, "floor")
        if not os.path.exists(program):
            self.missing["floor"] = f"{os.path.relpath(program, ROOT)} is missing"
            return
        self.write("floor/response", response)
        ports = [free_port(), free_port()]
        process = self.start(SERVER_CPU, ports, program, *map(str, ports), self.path("floor/response"), self.certificate, self.key,
                             stderr=subprocess.DEVNULL)
        for kind, port in zip(["card", "card-tls"], ports):
            self.targets["floor", kind] = Target(port, process)
        self.versions["floor"] = "a bare epoll loop"
