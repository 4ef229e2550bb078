/** Makes certificates for tests, so that none has to be installed or kept: X.509 v3 with a P-256 key, written as DER. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

export interface Certificate {
  readonly certificate: string;
  readonly key: string;
  readonly keyObject: KeyObject;
  readonly name: string;
}

export interface CertificateOptions {
  /** Common name. */
  readonly name: string;
  readonly dnsNames?: readonly string[];
  /** `undefined`: signed by itself. */
  readonly issuer?: Certificate;
  readonly authority?: boolean;
}

export function makeCertificate(options: CertificateOptions): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const signer = options.issuer?.keyObject ?? privateKey;
  const now = Date.now();
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ecdsaWithSha256,
    distinguishedName(options.issuer?.name ?? options.name),
    sequence(time(now - 3_600_000), time(now + 86_400_000)),
    distinguishedName(options.name),
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(...extensions(options))),
  );
  const signature = bitString(sign("sha256", body, signer));
  return {
    certificate: pem("CERTIFICATE", sequence(body, ecdsaWithSha256, signature)),
    key: privateKey.export({ type: "pkcs8", format: "pem" }),
    keyObject: privateKey,
    name: options.name,
  };
}

function extensions({ dnsNames = [], authority = false }: CertificateOptions): Buffer[] {
  const names = dnsNames.map((name) => tagged(0x82, Buffer.from(name)));
  const isAuthority = authority ? [tagged(0x01, Buffer.from([0xff]))] : [];
  return [
    extension([0x55, 0x1d, 0x13], sequence(...isAuthority)),
    ...(names.length === 0 ? [] : [extension([0x55, 0x1d, 0x11], sequence(...names))]),
  ];
}

const extension = (id: readonly number[], value: Buffer): Buffer =>
  sequence(tagged(0x06, Buffer.from(id)), tagged(0x04, value));

const distinguishedName = (name: string): Buffer =>
  sequence(
    tagged(
      0x31,
      sequence(tagged(0x06, Buffer.from([0x55, 0x04, 0x03])), tagged(0x0c, Buffer.from(name))),
    ),
  );

/** UTCTime: `YYMMDDHHMMSSZ`. */
const time = (ms: number): Buffer =>
  tagged(0x17, Buffer.from(`${new Date(ms).toISOString().replace(/[-:T]/g, "").slice(2, 14)}Z`));

const integer = (bytes: Buffer): Buffer => tagged(0x02, bytes);
const bitString = (bytes: Buffer): Buffer => tagged(0x03, Buffer.concat([Buffer.from([0]), bytes]));

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

function tagged(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([tag]), length(content.length), content]);
}

function length(count: number): Buffer {
  if (count < 0x80) return Buffer.from([count]);
  if (count < 0x100) return Buffer.from([0x81, count]);
  return Buffer.from([0x82, count >> 8, count & 0xff]);
}

const ecdsaWithSha256 = sequence(
  tagged(0x06, Buffer.from([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02])),
);

function pem(label: string, der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
