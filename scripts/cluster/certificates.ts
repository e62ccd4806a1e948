/** Certificates of the test cluster: one authority, the API server's, the admin's, and the accounts' signing key. */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);
const CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
const DAYS = ["-days", "30"];

/** Writes `ca`, `server` and `admin` (.crt, .key) and `accounts.key`; the server answers at these addresses. */
export async function makeCertificates(folder: string, addresses: string[]): Promise<void> {
  const openssl = async (...args: string[]) => await execute("openssl", args, { cwd: folder });
  await openssl(
    "req",
    "-x509",
    ...CURVE,
    ...DAYS,
    "-keyout",
    "ca.key",
    "-out",
    "ca.crt",
    "-subj",
    "/CN=sluice test cluster",
  );
  const issue = async (name: string, subject: string, extension: string) => {
    await openssl("req", ...CURVE, "-keyout", `${name}.key`, "-out", `${name}.csr`, "-subj", subject);
    await writeFile(path.join(folder, `${name}.ext`), `${extension}\n`);
    const authority = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", ...DAYS];
    await openssl("x509", "-req", "-in", `${name}.csr`, ...authority, "-extfile", `${name}.ext`, "-out", `${name}.crt`);
  };
  const names = ["DNS:localhost", "DNS:kubernetes.default.svc", ...addresses.map((address) => `IP:${address}`)];
  await issue("server", "/CN=kube-apiserver", `subjectAltName=${names.join(",")}`);
  await issue("admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth");
  await openssl("genrsa", "-out", "accounts.key", "2048");
}
