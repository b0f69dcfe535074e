//! One pet store, described in each of the dialects. `HOST` stands for where it is.

pub(super) const TWO: &str = r##"{
  "swagger": "2.0",
  "info": {"title": "Pets", "version": "1"},
  "host": "HOST",
  "basePath": "/v2",
  "schemes": ["http"],
  "consumes": ["application/json"],
  "paths": {
    "/pets": {
      "get": {
        "operationId": "listPets",
        "summary": "Lists pets.",
        "description": "Newest first.",
        "parameters": [
          {"name": "limit", "in": "query", "description": "How many.", "type": "integer", "minimum": 0, "exclusiveMinimum": true, "maximum": 100},
          {"name": "tags", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"},
          {"name": "ids", "in": "query", "type": "array", "items": {"type": "integer"}},
          {"name": "status", "in": "query", "type": "string", "enum": ["available", "sold"], "required": true},
          {"name": "X-Trace", "in": "header", "type": "string"},
          {"name": "X-Own", "in": "header", "type": "string"},
          {"name": "authorization", "in": "header", "type": "string", "required": true}
        ]
      },
      "post": {
        "operationId": "createPet",
        "parameters": [
          {"name": "body", "in": "body", "required": true, "description": "The pet.", "schema": {"$ref": "#/definitions/Pet"}}
        ]
      }
    },
    "/pets/{petId}": {
      "parameters": [{"$ref": "#/parameters/petId"}],
      "get": {"operationId": "getPet"},
      "post": {
        "operationId": "renamePet",
        "consumes": ["multipart/form-data", "application/x-www-form-urlencoded"],
        "parameters": [
          {"name": "name", "in": "formData", "type": "string", "required": true},
          {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"}
        ]
      },
      "delete": {"description": "Removes a pet."}
    },
    "/pets/{petId}/photo": {
      "post": {
        "operationId": "uploadPhoto",
        "consumes": ["multipart/form-data"],
        "parameters": [
          {"$ref": "#/parameters/petId"},
          {"name": "file", "in": "formData", "type": "file", "required": true}
        ]
      }
    }
  },
  "parameters": {
    "petId": {"name": "petId", "in": "path", "required": true, "type": "string", "description": "Which pet."}
  },
  "definitions": {
    "Pet": {
      "type": "object",
      "required": ["id", "name"],
      "properties": {
        "id": {"type": "integer", "format": "int64", "readOnly": true},
        "name": {"type": "string", "minLength": 1},
        "nickname": {"type": "string", "x-nullable": true},
        "category": {"$ref": "#/definitions/Category"},
        "parent": {"$ref": "#/definitions/Pet"}
      }
    },
    "Category": {"type": "string", "enum": ["cat", "dog"]}
  }
}"##;

pub(super) const THREE: &str = r#"
openapi: 3.0.3
info: {title: Pets, version: "1"}
servers:
  - url: http://{place}/{version}/
    variables:
      place: {default: "HOST"}
      version: {default: v2, enum: [v1, v2]}
paths:
  /pets:
    get:
      operationId: listPets
      summary: Lists pets.
      description: Newest first.
      parameters:
        - {name: limit, in: query, description: How many., schema: {type: integer, minimum: 0, exclusiveMinimum: true, maximum: 100}}
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
        - {name: ids, in: query, explode: false, schema: {type: array, items: {type: integer}}}
        - {name: status, in: query, required: true, schema: {type: string, enum: [available, sold]}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: X-Own, in: header, schema: {type: string}}
        - {name: authorization, in: header, required: true, schema: {type: string}}
        - {name: session, in: cookie, required: true, schema: {type: string}}
      responses:
        200: {description: The pets}
    post:
      operationId: createPet
      requestBody: {$ref: '#/components/requestBodies/Pet'}
  /pets/{petId}:
    parameters:
      - $ref: '#/components/parameters/petId'
    get:
      operationId: getPet
    post:
      operationId: renamePet
      requestBody:
        required: true
        content:
          multipart/form-data: {schema: {type: object}}
          application/x-www-form-urlencoded:
            schema:
              type: object
              required: [name]
              properties:
                name: {type: string}
                tags: {type: array, items: {type: string}}
    delete:
      description: Removes a pet.
  /pets/{petId}/photo:
    post:
      operationId: uploadPhoto
      parameters:
        - $ref: '#/components/parameters/petId'
      requestBody:
        required: true
        content:
          application/octet-stream: {schema: {type: string, format: binary}}
components:
  parameters:
    petId: {name: petId, in: path, required: true, description: Which pet., schema: {type: string}}
  requestBodies:
    Pet:
      required: true
      description: The pet.
      content:
        application/json:
          schema: {$ref: '#/components/schemas/Pet'}
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: {type: integer, format: int64, readOnly: true}
        name: {type: string, minLength: 1}
        nickname: {type: string, nullable: true}
        category: {$ref: '#/components/schemas/Category'}
        parent: {$ref: '#/components/schemas/Pet'}
    Category: {type: string, enum: [cat, dog]}
"#;

pub(super) const THREE_ONE: &str = r##"{
  "openapi": "3.1.0",
  "info": {"title": "Pets", "version": "1"},
  "servers": [{"url": "/v2"}],
  "paths": {
    "/pets": {
      "get": {
        "operationId": "listPets",
        "summary": "Lists pets.",
        "description": "Newest first.",
        "parameters": [
          {"name": "limit", "in": "query", "description": "How many.", "schema": {"type": "integer", "exclusiveMinimum": 0, "maximum": 100}},
          {"name": "tags", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
          {"name": "ids", "in": "query", "style": "form", "explode": false, "schema": {"type": "array", "items": {"type": "integer"}}},
          {"name": "status", "in": "query", "required": true, "schema": {"type": "string", "enum": ["available", "sold"]}},
          {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
          {"name": "X-Own", "in": "header", "schema": {"type": "string"}},
          {"name": "authorization", "in": "header", "required": true, "schema": {"type": "string"}}
        ]
      },
      "post": {
        "operationId": "createPet",
        "requestBody": {
          "required": true,
          "description": "The pet.",
          "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}
        }
      }
    },
    "/pets/{petId}": {"$ref": "#/components/pathItems/Pet"},
    "/pets/{petId}/photo": {
      "post": {
        "operationId": "uploadPhoto",
        "requestBody": {"required": true, "content": {"image/png": {}}}
      }
    }
  },
  "components": {
    "pathItems": {
      "Pet": {
        "parameters": [{"name": "petId", "in": "path", "required": true, "description": "Which pet.", "schema": {"type": "string"}}],
        "get": {"operationId": "getPet"},
        "post": {
          "operationId": "renamePet",
          "requestBody": {
            "required": true,
            "content": {
              "application/x-www-form-urlencoded": {
                "schema": {
                  "type": "object",
                  "required": ["name"],
                  "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}
                }
              }
            }
          }
        },
        "delete": {"description": "Removes a pet."}
      }
    },
    "schemas": {
      "Pet": {
        "type": "object",
        "required": ["id", "name"],
        "properties": {
          "id": {"type": "integer", "format": "int64", "readOnly": true},
          "name": {"type": "string", "minLength": 1},
          "nickname": {"type": ["string", "null"]},
          "category": {"$ref": "#/components/schemas/Category"},
          "parent": {"$ref": "#/components/schemas/Pet"}
        }
      },
      "Category": {"type": "string", "enum": ["cat", "dog"]}
    }
  }
}"##;
