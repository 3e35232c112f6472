"""Pages of the web as text, and search pages as lists, with the standard library alone."""
import html.parser
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request

MAX_BYTES = 4 * 2**20
TIMEOUT_SECONDS = 20
MAX_RESULTS = 20
AGENT = "atoll-websearch-tools"
NO_NETWORK = ("{url}: {reason}; this sandbox reaches only what its rules allow, and nothing while "
              "it has no network")
BLOCKS = {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "section",
          "article", "table", "ul", "ol", "dl", "dt", "dd", "blockquote", "header", "footer"}
UNSEEN = {"script", "style", "noscript", "template", "svg", "head"}


class WebError(Exception):
    def __init__(self, message, exit_code):
        super().__init__(message)
        self.exit_code = exit_code


class TextReader(html.parser.HTMLParser):
    """The words that a reader sees; the title comes first."""

    def __init__(self):
        super().__init__()
        self.title, self.parts, self.unseen, self.in_title = "", [], 0, False

    def handle_starttag(self, tag, attributes):
        self.in_title = tag == "title"
        self.unseen += tag in UNSEEN
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag):
        self.in_title = False
        self.unseen = max(0, self.unseen - (tag in UNSEEN))
        if tag in BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data):
        if self.in_title:
            self.title += data
        elif not self.unseen:
            self.parts.append(data)

    def text(self):
        lines = (re.sub(r"\s+", " ", line).strip() for line in "".join(self.parts).split("\n"))
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
        title = re.sub(r"\s+", " ", self.title).strip()
        return f"{title}\n\n{body}" if title else body


class ResultReader(html.parser.HTMLParser):
    """Links of class result__a and the snippets of class result__snippet after them."""

    def __init__(self, base):
        super().__init__()
        self.base, self.results, self.field, self.tag = base, [], None, None

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        classes = (values.get("class") or "").split()
        if "result__a" in classes and values.get("href"):
            url = target_of(urllib.parse.urljoin(self.base, values["href"]))
            self.results.append({"title": "", "url": url, "snippet": ""})
            self.field, self.tag = "title", tag
        elif "result__snippet" in classes and self.results:
            self.field, self.tag = "snippet", tag

    def handle_endtag(self, tag):
        if tag == self.tag:
            self.field = self.tag = None

    def handle_data(self, data):
        if self.field:
            self.results[-1][self.field] += data


def target_of(url):
    """Where a link that counts clicks leads to."""
    target = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query).get("uddg")
    return target[0] if target else url


class Page:
    def __init__(self, url, content_type, charset, data):
        self.url, self.content_type, self.data = url, content_type, data
        try:
            self.decoded = data.decode(charset or "utf-8", "replace")
        except LookupError:
            self.decoded = data.decode("utf-8", "replace")

    def text(self):
        if "html" not in self.content_type:
            return self.decoded
        reader = TextReader()
        reader.feed(self.decoded)
        reader.close()
        return reader.text()

    def results(self):
        reader = ResultReader(self.url)
        reader.feed(self.decoded)
        reader.close()
        for result in reader.results:
            for field in ("title", "snippet"):
                result[field] = re.sub(r"\s+", " ", result[field]).strip()
        return reader.results[:MAX_RESULTS]


class WebRedirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(self, request, file, code, message, headers, url):
        if not url.startswith(("http://", "https://")):
            raise WebError(f"{request.full_url}: leads to {url}", 1)
        return super().redirect_request(request, file, code, message, headers, url)


def get(url):
    request = urllib.request.Request(url, headers={"User-Agent": AGENT})
    try:
        with urllib.request.build_opener(WebRedirects).open(request,
                                                            timeout=TIMEOUT_SECONDS) as answer:
            data = answer.read(MAX_BYTES + 1)
            head = answer.headers
            page = Page(answer.url, head.get_content_type(), head.get_content_charset(), data)
    except urllib.error.HTTPError as error:
        raise WebError(f"{url}: the server answered {error.code} {error.reason}", 1) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            why = error.reason.verify_message
            raise WebError(f"{url}: its certificate is not trusted: {why}", 1) from error
        raise WebError(NO_NETWORK.format(url=url, reason=error.reason), 3) from error
    except (OSError, ValueError) as error:
        raise WebError(NO_NETWORK.format(url=url, reason=error), 3) from error
    if len(data) > MAX_BYTES:
        raise WebError(f"{url}: is larger than {MAX_BYTES} bytes", 1)
    return page
