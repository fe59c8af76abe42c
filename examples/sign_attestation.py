# SPDX-License-Identifier: Apache-2.0
"""Signs a statement of `tcast convert --attest` with a local key, as a DSSE envelope; or checks one and prints what it has.

    openssl genpkey -algorithm ed25519 -out key.pem && openssl pkey -in key.pem -pubout -out key.pub
    python sign_attestation.py sign attestation.intoto.json key.pem > signed.json
    python sign_attestation.py check signed.json key.pub > attestation.intoto.json
"""

import base64
import json
import pathlib
import subprocess
import sys
import tempfile

PAYLOAD_TYPE = "application/vnd.in-toto+json"


def signed_bytes(payload: bytes) -> bytes:
    """What DSSE signs: the type and the payload with their lengths."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def openssl(payload: bytes, arguments: list[str], signature: bytes | None = None) -> bytes:
    """Runs `openssl pkeyutl` on the payload, which it reads from a file. Raises CalledProcessError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        message, against = pathlib.Path(folder, "message"), pathlib.Path(folder, "signature")
        message.write_bytes(signed_bytes(payload))
        command = ["openssl", "pkeyutl", "-rawin", "-in", str(message), *arguments]
        if signature is not None:
            against.write_bytes(signature)
            command += ["-sigfile", str(against)]
        return subprocess.run(command, check=True, capture_output=True).stdout


def sign(statement: bytes, key: str) -> str:
    signature = openssl(statement, ["-sign", "-inkey", key])
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(statement).decode(),
        "signatures": [{"sig": base64.b64encode(signature).decode()}],
    }
    return json.dumps(envelope, indent=1) + "\n"


def check(envelope: bytes, public_key: str) -> str:
    fields = json.loads(envelope)
    if fields["payloadType"] != PAYLOAD_TYPE:
        sys.exit(f"the payload is {fields['payloadType']}, and not a statement")
    payload = base64.b64decode(fields["payload"], validate=True)
    signature = base64.b64decode(fields["signatures"][0]["sig"], validate=True)
    try:
        openssl(payload, ["-verify", "-pubin", "-inkey", public_key], signature)
    except subprocess.CalledProcessError:
        sys.exit("the signature is not that of this key")
    return payload.decode()


def main() -> None:
    if len(sys.argv) != 4 or sys.argv[1] not in ("sign", "check"):
        sys.exit(__doc__)
    content = pathlib.Path(sys.argv[2]).read_bytes()
    sys.stdout.write((sign if sys.argv[1] == "sign" else check)(content, sys.argv[3]))


if __name__ == "__main__":
    main()
