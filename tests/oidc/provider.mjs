// The certified provider of the npm package `oidc-provider`, for the tests. It listens on a free port of loopback, and says which one it
// is on its first line of output. What stands in the file CONTROL is read for every request:
//
//   accounts   what is told of whoever signs in, by the name that they sign in with
//   fault      what a certified provider would not do: see `faults`
//
// CLIENT is the registration of the service that is tested.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { createRequire } from 'node:module';

// The packages are not in this folder.
const require = createRequire(pathToFileURL(`${process.env.PACKAGES}/`));
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const { default: Provider } = await load('oidc-provider');
const { SignJWT, UnsecuredJWT, decodeJwt, exportJWK, generateKeyPair } = await load('jose');

const control = () => JSON.parse(readFileSync(process.env.CONTROL, 'utf8'));
const client = JSON.parse(process.env.CLIENT);
const alg = client.id_token_signed_response_alg ?? 'RS256';

const newKey = async (kid) => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const named = (jwk) => ({ ...jwk, kid, alg, use: 'sig' });
  return { kid, privateKey, full: named(await exportJWK(privateKey)), open: named(await exportJWK(publicKey)) };
};
const [own, next] = [await newKey('own'), await newKey('next')];

const signed = (claims, key, kid = key.kid) =>
  new SignJWT(claims).setProtectedHeader({ alg, kid }).sign(key.privateKey);
const tokens = (change) => ({ '/token': async (body) => ({ ...body, id_token: await change(decodeJwt(body.id_token)) }) });
const claims = (set) => tokens((told) => signed({ ...told, ...set }, own));

// What is answered in the place of a provider's own answers, by the path.
const faults = {
  nonce: claims({ nonce: 'of another sign-in' }),
  issuer: claims({ iss: 'https://evil.example' }),
  audience: claims({ aud: 'another-client' }),
  audiences: claims({ aud: [client.client_id, 'another-client'] }),
  subject: claims({ sub: 'somebody-else' }),
  expired: claims({ iat: 1_700_000_000, exp: 1_700_000_600 }),
  unsigned: tokens((told) => new UnsecuredJWT(told).encode()),
  secret: tokens((told) =>
    new SignJWT(told).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode(client.client_secret))),
  forged: tokens((told) => signed(told, next, own.kid)),
  unknown_key: tokens((told) => signed(told, next)),
  // New keys, and the old ones are gone.
  rotated: { ...tokens((told) => signed(told, next)), '/jwks': () => ({ keys: [next.open] }) },
  no_token: { '/token': ({ id_token, ...rest }) => rest },
  document: { '/.well-known/openid-configuration': (body) => ({ ...body, issuer: 'https://evil.example' }) },
};

let provider;
const server = createServer((request, response) => {
  const { fault } = control();
  if (fault === 'away') {
    request.socket.destroy();
    return;
  }
  const change = fault && faults[fault][request.url.split('?')[0]];
  if (change) {
    const end = response.end.bind(response);
    response.end = (body) => {
      const told = JSON.parse(body);
      // A refusal stays one.
      const changed = told.error ? told : change(told);
      Promise.resolve(changed).then((changed) => {
        const text = JSON.stringify(changed);
        response.setHeader('content-length', Buffer.byteLength(text));
        end(text);
      });
      return response;
    };
  }
  provider(request, response);
});

server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const configured = new Provider(issuer, {
    clients: [client],
    jwks: { keys: [own.full] },
    cookies: { keys: ['of the tests'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
    pkce: { required: () => true },
    findAccount: (_, name) => ({
      accountId: name,
      claims: () => ({ sub: name, ...control().accounts[name] }),
    }),
  });
  provider = configured.callback();
  console.log(JSON.stringify({ issuer }));
});
