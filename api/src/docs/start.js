'use strict';

SwaggerUIBundle({
  url: '../openapi.json',
  dom_id: '#pages',
  presets: [SwaggerUIBundle.presets.apis],
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: 'none',
  filter: true,
  queryConfigEnabled: false,
  validatorUrl: 'none',
});
