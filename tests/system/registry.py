"""A small OCI registry on loopback that wants a bearer token, or a user and a password."""
import base64
import http.server
import json
import threading
import urllib.parse


class Registry:
    USER = base64.b64encode(b"user:secret").decode()

    def __init__(self, repository, image, auth="none"):
        self.repository, self.image, self.auth = repository, image, auth
        self.asked = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append((self.path, self.headers.get("Authorization", "")))
                outer.answer(self)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    def challenge(self):
        if self.auth == "basic":
            return 'Basic realm="test"'
        return f'Bearer realm="http://{self.host}/token?x=1",service="test"'

    def allowed(self, header):
        wanted = {"none": header, "basic": f"Basic {self.USER}", "bearer": "Bearer good-token"}
        return header == wanted[self.auth]

    def answer(self, request):
        if request.path.startswith("/token"):
            scope = urllib.parse.quote(f"repository:{self.repository}:pull", safe="")
            good = f"scope={scope}" in request.path
            return self.send(request, 200 if good else 400,
                             json.dumps({"token": "good-token"}).encode())
        if not self.allowed(request.headers.get("Authorization", "")):
            return self.send(request, 401, b"", {"WWW-Authenticate": self.challenge()})
        found = self.find(request.path)
        return self.send(request, 404 if found is None else 200, found or b"")

    def find(self, path):
        prefix = f"/v2/{self.repository}/"
        if not path.startswith(prefix):
            return None
        kind, _, name = path[len(prefix):].partition("/")
        if kind == "manifests" and name == "latest":
            return self.image.index
        return self.image.blobs.get(name)

    @staticmethod
    def send(request, status, body, headers=None):
        request.send_response(status)
        for name, value in (headers or {}).items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
