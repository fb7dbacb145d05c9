"""Two hundred pieces of ordinary code and prose that resemble secrets. None of them may be changed by redaction."""

from __future__ import annotations

_CODE = """
sk-learn-contrib-projects-for-everyone
sk-folding-cube sk-cube-grid sk-three-bounce
task-runner-with-many-words-in-it
risk-assessment-of-the-whole-programme
pk-column-of-the-customers-table
Basic authentication is required
basic understanding of the matter
a basic implementation-of-it
Bearer authentication required
bearer credentials are missing
the token refreshed itself
token expired-or-missing
token bucket-algorithm
password = getpass.getpass()
password: str = ""
password: Optional[str] = None
password = os.environ["DB_PASSWORD"]
password=$DB_PASSWORD
password=${DB_PASSWORD}
password: <your-password>
api_key: str | None = None
api_key = settings.api_key
api_key=self._api_key
api-key: $API_KEY
apiKey: process.env.OPENAI_API_KEY
client_secret = config["client_secret"]
access_token = response.json()["access_token"]
auth_token: ${{ secrets.AUTH_TOKEN }}
secret_key = get_random_secret_key()
passwd: files systemd
https://example.org/path?with=query&and=more
https://user@example.org/repo.git
git@github.com:owner/repository.git
ssh://git@example.org:22/owner/repository.git
postgres://localhost:5432/database
redis://cache:6379/0
http://127.0.0.1:8080/health
d41d8cd98f00b204e9800998ecf8427e
da39a3ee5e6b4b0d3255bfef95601890afd80709
e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
DA39A3EE5E6B4B0D3255BFEF95601890AFD80709
4f091ff2c1d7e8a9b0c1d2e3f4a5b6c7d8e9f0a1
123e4567-e89b-12d3-a456-426614174000
550E8400-E29B-41D4-A716-446655440000
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
thr_01jb2c3d4e5f6g7h8j9k0mnpqr
evt_00000000000000000000000042
itm_01jb2c3d4e5f6g7h8j9k0mnpqs
getElementsByClassNameAndTagNameAndAttribute
AbstractSingletonProxyFactoryBeanImplementation2
NSApplicationDelegateReplySuccessNotification
shouldRenderTheComponentWhenThePropsChange3Times
test_that_the_parser_reads_numbers_up_to_4294967296
THIS_IS_A_VERY_LONG_CONSTANT_NAME_WITH_42_IN_IT
__attribute__((visibility("default")))
com.example.project.module.submodule.ClassName
lorem-ipsum-dolor-sit-amet-consectetur-adipiscing
2026-11-15T11:23:36.123456+00:00
0123456789012345678901234567890123456789
11111111111111111111111111111111
--------------------------------------------------
________________________________________
================================================
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
0x7fffffffffffffffffffffffffffffff
3.14159265358979323846264338327950288
ffmpeg -i input.mp4 -c:v libx264 -crf 23 output.mp4
eyJust a word
eyJ is how base64 of {" begins
AKIA is a prefix
AIza is another
xoxo-love-and-kisses
npm_config_registry
npm_package_version
hf_hub_download
hf_transfer
ghp_ is the prefix of a token
github_pat_ is the other
pypi-server
glpat- is a prefix
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
ssh-rsa is a kind of key
ssh-ed25519 is a newer kind
color: #ff00ff;
grid-template-columns: repeat(12, minmax(0, 1fr));
M 10 10 L 20 20 C 30 30 40 40 50 50 Z
[0-9A-Za-z_-]{32,}
^(?:[a-z0-9]+(?:-[a-z0-9]+)*)$
SELECT * FROM tokens WHERE token = ?
assert token is not None
def token(self) -> str:
tokens = tokenizer.encode(text)
max_tokens = 4096
total_tokens=128000
csrf_token_is_missing
The password must have at least eight characters
Forgot your password? Reset it here
Enter passphrase for key
keyboard-interactive
public-key-authentication
monkeypatch.setenv("HOME", str(tmp_path))
secretary-general
"""
LOOK_ALIKES: list[str] = [line for line in _CODE.strip().splitlines() if line.strip()]
# Names as programs write them, in the lengths at which a guess by looks would begin to err.
LOOK_ALIKES += [f"{verb}{noun}{tail}" for verb in ("get", "set", "find", "parse", "compute") for noun in
    ("UserAccountSettings", "HttpRequestHeaderValue", "DatabaseConnectionPool", "RenderedMarkdownBlock")
    for tail in ("FromCache", "ById2", "V3Async", "WithRetry10", "")]  # fmt: skip
