// The interpreter of a JavaScript or TypeScript context: waits for code, runs it in the one global
// scope and says what came of it. What it is told and what it says are lines of fields between tabs,
// see src/sandbox/speech.h. It is told on descriptor 0 and speaks on descriptor 5.
(() => {
  const own = require;  // the global one becomes the user's
  const {builtinModules, createRequire, stripTypeScriptTypes} = own('module');
  const fs = require('fs');
  const net = require('net');
  const path = require('path');
  const url = require('url');
  const util = require('util');
  const vm = require('vm');
  const acorn = require('internal/deps/acorn/acorn/dist/acorn');
  const {startSigintWatchdog, stopSigintWatchdog} =
      require('internal/test/binding').internalBinding('contextify');

  const LIMIT = 15 << 20;  // bytes of one line, of which atolld takes 16 MiB
  const typescript = process.argv[process.argv.length - 1] === 'typescript';
  const state = {run: '0', failed: null, interrupt: null};

  const escapes = {'\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r'};
  const unescapes = {'\\\\': '\\', '\\t': '\t', '\\n': '\n', '\\r': '\r'};
  const escape = (text) => String(text).replace(/[\\\t\n\r]/g, (c) => escapes[c]);
  const unescape = (text) => text.replace(/\\[\\tnr]/g, (c) => unescapes[c]);

  function speak(...fields) {
    let data = Buffer.from(fields.map(escape).join('\t') + '\n');
    while (data.length > 0) data = data.subarray(fs.writeSync(5, data));
  }

  function result(bundle, main) {
    let fields = [];
    for (const [kind, data] of Object.entries(bundle)) {
      const text = Buffer.isBuffer(data) ? data.toString('base64')
          : typeof data === 'string' ? data : JSON.stringify(data);
      if (text !== undefined) fields.push(kind, text);
    }
    if (fields.reduce((sum, field) => sum + field.length, 0) > LIMIT)
      fields = ['text/plain', `<a result of more than ${LIMIT} bytes>`];
    if (fields.length > 0) speak('result', state.run, main ? 1 : 0, ...fields.slice(0, 62));
  }

  function error(failure) {
    const known = failure instanceof Error || util.types.isNativeError(failure);
    const name = known ? failure.name : 'Error';
    const value = known ? failure.message : util.inspect(failure);
    const trace = known && failure.stack ? String(failure.stack) : '';
    const inner = trace.search(/\n    at [^\n]*(node:internal|node:vm|\[eval\])/);
    state.failed = failure === interruption ? 'interrupted' : 'exception';
    speak('error', state.run, name, value, inner < 0 ? trace : trace.slice(0, inner));
  }

  // One argument that is {mime: {...}} gives its own representations.
  globalThis.display = (...values) => {
    for (const value of values)
      result(value && value.mime ? value.mime : {'text/plain': util.inspect(value)}, false);
  };
  for (const name of builtinModules)
    if (!name.startsWith('_') && !name.includes('/') && !(name in globalThis))
      Object.defineProperty(globalThis, name, {
        configurable: true,
        get: () => own(name),
        set: (value) => Object.defineProperty(globalThis, name,
            {value, writable: true, configurable: true, enumerable: true}),
      });
  const here = () => createRequire(process.cwd() + '/');
  globalThis.require = Object.assign((name) => here()(name),
      {resolve: (name) => here().resolve(name)});

  function strip(code) {
    if (stripTypeScriptTypes) return stripTypeScriptTypes(code);
    for (const place of [process.cwd() + '/', '/opt/atoll/node/', '/usr/lib/node_modules/'])
      try {
        const {transform} = createRequire(place)('sucrase');
        return transform(code, {transforms: ['typescript']}).code;
      } catch (failure) {
        if (failure.code !== 'MODULE_NOT_FOUND') throw failure;
      }
    return null;
  }

  function bindings(node) {
    const names = node.specifiers.map((one) => {
      const local = one.local.name;
      if (one.type === 'ImportDefaultSpecifier') return `default: ${local}`;
      return `${one.imported ? one.imported.name || one.imported.raw : ''}: ${local}`;
    });
    return `{${names.join(', ')}}`;
  }

  // Declarations at the top become properties of the global object, so that they last and can be
  // made again; imports become dynamic ones; with `await` the code becomes the body of a function.
  function translate(code) {
    const options = {ecmaVersion: 'latest', sourceType: 'module', allowAwaitOutsideFunction: true,
      allowReturnOutsideFunction: false};
    const tree = acorn.parse(code, options);
    const edits = [];
    const names = [];
    let waits = false;
    const collect = (pattern) => {
      if (!pattern) return;
      if (pattern.type === 'Identifier') names.push(pattern.name);
      if (pattern.type === 'ObjectPattern')
        pattern.properties.forEach((one) => collect(one.value || one.argument));
      if (pattern.type === 'ArrayPattern') pattern.elements.forEach(collect);
      if (pattern.type === 'AssignmentPattern') collect(pattern.left);
      if (pattern.type === 'RestElement') collect(pattern.argument);
    };
    const look = (node) => {
      if (!node || typeof node.type !== 'string' || /Function/.test(node.type)) return;
      if (node.type === 'AwaitExpression' || node.type === 'ForOfStatement' && node.await)
        waits = true;
      for (const value of Object.values(node))
        for (const child of Array.isArray(value) ? value : [value])
          if (child && typeof child === 'object') look(child);
    };
    tree.body.forEach(look);
    for (const node of tree.body) {
      if (node.type === 'ImportDeclaration') {
        waits = true;
        const load = `await import(${node.source.raw})`;
        const space = node.specifiers.find((one) => one.type === 'ImportNamespaceSpecifier');
        node.specifiers.forEach((one) => names.push(one.local.name));
        edits.push([node.start, node.end, node.specifiers.length === 0 ? `${load};`
          : space ? `${space.local.name} = ${load};` : `(${bindings(node)} = ${load});`]);
      } else if (/^Export/.test(node.type)) {
        throw new SyntaxError('a context has no exports');
      }
    }
    const last = tree.body[tree.body.length - 1];
    if (last && last.type === 'ExpressionStatement')
      edits.push([last.start, last.end, `globalThis.__atoll_value = (${
        code.slice(last.expression.start, last.expression.end)});`]);
    for (const node of tree.body) {
      if (node.type === 'VariableDeclaration') {
        node.declarations.forEach((one) => collect(one.id));
        edits.push([node.start, node.declarations[0].start, waits ? ';(' : 'var ']);
        if (waits) {
          for (const one of node.declarations)
            if (!one.init) edits.push([one.end, one.end, ' = undefined']);
          const end = code[node.end - 1] === ';' ? node.end - 1 : node.end;
          edits.push([end, node.end, ');']);
        }
      } else if (node.type === 'ClassDeclaration') {
        names.push(node.id.name);
        edits.push([node.start, node.start, waits ? `;${node.id.name} = ` : `var ${node.id.name} = `]);
        edits.push([node.end, node.end, ';']);
      } else if (node.type === 'FunctionDeclaration' && waits) {
        names.push(node.id.name);
        edits.push([node.end, node.end, `;globalThis.${node.id.name} = ${node.id.name};`]);
      }
    }
    edits.sort((a, b) => b[0] - a[0] || b[1] - a[1]);
    for (const [from, to, text] of edits) code = code.slice(0, from) + text + code.slice(to);
    if (!waits) return code;
    const declared = tree.body.some((node) => node.type === 'FunctionDeclaration')
      ? names.filter((name) => !tree.body.some((node) =>
          node.type === 'FunctionDeclaration' && node.id.name === name)) : names;
    return `${declared.length ? `var ${[...new Set(declared)].join(', ')};` : ''}` +
        `(async () => {\n${code}\n})()`;
  }

  const interruption = new Error('the run was interrupted');
  interruption.name = 'Interrupted';
  interruption.stack = '';

  const load = (name) => import(/^\.{0,2}\//.test(name)
    ? url.pathToFileURL(path.resolve(process.cwd(), name)).href
    : /^[\w@][\w@/.-]*$/.test(name) && !builtinModules.includes(name)
      ? resolved(name) : name);
  function resolved(name) {
    try {
      return url.pathToFileURL(globalThis.require.resolve(name)).href;
    } catch {
      return name;
    }
  }

  // Calls `act` under the watch for SIGINT, of which "begun" is a part: atolld sends none before.
  // The watch gives SIGINT back to the listeners without a moment in which it would end Node: it is
  // not stopped before the next run.
  function watched(act) {
    const name = '__atoll_watched';
    const listeners = process.rawListeners('SIGINT');
    process.removeAllListeners('SIGINT');
    stopSigintWatchdog();
    startSigintWatchdog();
    Object.defineProperty(globalThis, name, {value: act, configurable: true});
    try {
      return new vm.Script(`${name}()`).runInThisContext(
          {breakOnSigint: true, displayErrors: false});
    } finally {
      delete globalThis[name];
      for (const listener of listeners) process.on('SIGINT', listener);
    }
  }

  async function evaluate(code) {
    const script = new vm.Script(translate(code), {filename: `run ${state.run}`,
      importModuleDynamically: load});
    delete globalThis.__atoll_value;
    let value;
    try {
      value = watched(() => {
        delete globalThis.__atoll_watched;
        speak('begun', state.run);
        return script.runInThisContext({displayErrors: false});
      });
    } catch (failure) {
      if (failure && failure.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') throw interruption;
      throw failure;
    }
    const stopped = new Promise((_, reject) => { state.interrupt = () => reject(interruption); });
    // An interrupt that came at the end of the watch is lost: atolld sends it once more.
    if (util.types.isPromise(value)) speak('begun', state.run);
    if (util.types.isPromise(value)) await Promise.race([value, stopped]);
    value = globalThis.__atoll_value;
    delete globalThis.__atoll_value;
    return util.types.isPromise(value) ? Promise.race([value, stopped]) : value;
  }

  async function run(number, code, variables) {
    state.run = number;
    state.failed = null;
    const saved = variables.map((one) => one.slice(0, one.indexOf('=')))
        .map((name) => [name, process.env[name]]);
    for (const one of variables)
      process.env[one.slice(0, one.indexOf('='))] = one.slice(one.indexOf('=') + 1);
    try {
      if (typescript) code = strip(code);
      const value = await evaluate(code);
      if (value !== undefined)
        result(value && value.mime ? value.mime : {'text/plain': util.inspect(value)}, true);
    } catch (failure) {
      error(failure);
    }
    state.interrupt = null;
    for (const [name, value] of saved)
      if (value === undefined) delete process.env[name]; else process.env[name] = value;
    speak('end', number, state.failed || 'ok');
  }

  function complete(number, code) {
    state.run = number;
    const word = /[\w$.]*$/.exec(code)[0];
    const dot = word.lastIndexOf('.');
    const matches = new Set();
    try {
      const owner = dot < 0 ? globalThis : vm.runInThisContext(word.slice(0, dot));
      for (let at = Object(owner); at; at = Object.getPrototypeOf(at))
        for (const name of Object.getOwnPropertyNames(at))
          if (name.startsWith(word.slice(dot + 1))) matches.add(word.slice(0, dot + 1) + name);
    } catch { /* what it begins with has no value */ }
    result({'application/vnd.atoll.completion+json': {start: code.length - word.length,
      matches: [...matches].sort().slice(0, 200)}}, true);
    speak('end', number, 'ok');
  }

  startSigintWatchdog();
  process.on('SIGINT', () => { if (state.interrupt) state.interrupt(); });
  process.on('uncaughtException', (failure) => { console.error(failure); });
  process.on('unhandledRejection', (failure) => {
    if (failure !== interruption) console.error(failure);
  });
  if (typescript && strip('let a: number = 1') === null) {
    console.error('TypeScript needs Node 22.13 or newer, or the package sucrase beside the code');
    process.exit(1);
  }

  let rest = '';
  let work = Promise.resolve();
  const decoder = new (own('string_decoder').StringDecoder)('utf8');
  const commands = new net.Socket({fd: 0, readable: true, writable: false});
  commands.on('end', () => process.exit(0));
  commands.on('data', (piece) => {
    rest += decoder.write(piece);
    const lines = rest.split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const [kind, ...told] = line.split('\t').map(unescape);
      if (kind === 'start')
        speak('ready', `Node ${process.version}${typescript ? ', TypeScript' : ''}`, 'begun');
      if (kind === 'run') work = work.then(() => run(told[0], told[1], told.slice(2)));
      if (kind === 'complete') work = work.then(() => complete(told[0], told[1]));
    }
  });
})();
